"""Legacy `useStream` of `@langchain/langgraph-sdk/react`, under jsdom, in three settings: `js/hook/`."""

from __future__ import annotations

import pytest
import pytest_asyncio

from tests.clients.conftest import RunScript
from tests.clients.node import Report

pytestmark = pytest.mark.slow

SETTINGS = ["default", "fetchStateHistory", "reconnectOnMount"]
IN_EACH = [
    "a new thread",
    "a thread that was there before",
    "stop",
    "the next message right after stop",
    "an interrupt and its answer",
    "a node's error",
]
REJOINING = ["reconnectOnMount", "reconnectOnMount with history"]
IN_REJOINING = ["rejoins in mid-stream", "comes back after the end", "stops what it rejoined"]

CHECKS = [
    "two pages on one thread",
    "an agent's tool calls",
    *(f"{setting}: {check}" for setting in SETTINGS for check in IN_EACH),
    *(f"{setting}: {check}" for setting in REJOINING for check in IN_REJOINING),
    "a connection that is cut in mid-stream",
    "an answer that is begun anew replaces what was shown of it",
    "joinStream from where it was left",
    "edit a message: a fork, both branches shown",
    "edit the first message, with the default history: a fork from the beginning",
    "regenerate an answer",
]


@pytest_asyncio.fixture(scope="module")
async def report(script: RunScript) -> Report:
    return await script("use_stream")


@pytest.mark.parametrize("name", CHECKS)
def test_check(report: Report, name: str) -> None:
    report.assert_passed(name)


def test_no_other_check(report: Report) -> None:
    assert list(report.checks) == CHECKS
