"""`LangGraphAgent` of `@ag-ui/langgraph`, the adapter that CopilotKit uses: `js/ag_ui.mjs`."""

from __future__ import annotations

import pytest
import pytest_asyncio

from tests.clients.conftest import RunScript
from tests.clients.node import Report

pytestmark = pytest.mark.slow

CHECKS = [
    "a turn",
    "a second turn on the same thread",
    "a tool call",
    "two tool calls at once",
    "an interrupt and its answer, as it is by default",
    "an interrupt and its answer, as an outcome",
    "a node's error",
    "regenerate",
    "abortRun",
]


@pytest_asyncio.fixture(scope="module")
async def report(script: RunScript) -> Report:
    return await script("ag_ui")


@pytest.mark.parametrize("name", CHECKS)
def test_check(report: Report, name: str) -> None:
    report.assert_passed(name)


def test_no_other_check(report: Report) -> None:
    assert list(report.checks) == CHECKS
