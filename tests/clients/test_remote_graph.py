"""`RemoteGraph` of `@langchain/langgraph`, alone and as a node of a JavaScript graph: `js/remote_graph.mjs`."""

from __future__ import annotations

import pytest
import pytest_asyncio

from tests.clients.conftest import RunScript
from tests.clients.node import Report

pytestmark = pytest.mark.slow

CHECKS = [
    "invoke",
    "stream",
    "an interrupt and its answer",
    "a node's error",
    "getState, getStateHistory, updateState",
    "getGraphAsync",
    "as a node of another graph",
]


@pytest_asyncio.fixture(scope="module")
async def report(script: RunScript) -> Report:
    return await script("remote_graph")


@pytest.mark.parametrize("name", CHECKS)
def test_check(report: Report, name: str) -> None:
    report.assert_passed(name)


def test_no_other_check(report: Report) -> None:
    assert list(report.checks) == CHECKS
