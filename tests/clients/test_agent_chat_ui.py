"""What agent-chat-ui asks of a server, as far as its hook does it: `js/agent_chat_ui.mjs`."""

from __future__ import annotations

import pytest
import pytest_asyncio

from tests.clients.conftest import RunScript
from tests.clients.node import Report

pytestmark = pytest.mark.slow

CHECKS = [
    "a session",
]


@pytest_asyncio.fixture(scope="module")
async def report(script: RunScript) -> Report:
    return await script("agent_chat_ui")


@pytest.mark.parametrize("name", CHECKS)
def test_check(report: Report, name: str) -> None:
    report.assert_passed(name)


def test_no_other_check(report: Report) -> None:
    assert list(report.checks) == CHECKS
