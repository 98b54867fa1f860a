"""`@langchain/langgraph-sdk` drives every route that it has a method for, in `js/sdk/`."""

from __future__ import annotations

import pytest
import pytest_asyncio
from starlette.routing import compile_path

from api.access import RULES
from tests.clients.conftest import RunScript
from tests.clients.node import Report

pytestmark = pytest.mark.slow

CHECKS = [
    "assistants.search",
    "assistants.search by page",
    "assistants.search with select",
    "assistants.count",
    "assistants.create",
    "assistants.get",
    "assistants.update",
    "assistants.getVersions",
    "assistants.setLatest",
    "assistants.delete",
    "assistants.getGraph",
    "assistants.getGraph with xray",
    "assistants.getSchemas",
    "assistants.getSubgraphs",
    "threads.create",
    "threads.create with supersteps",
    "threads.create with ttl",
    "threads.get",
    "threads.update",
    "threads.delete",
    "threads.search",
    "threads.search by state",
    "threads.count",
    "threads.copy",
    "threads.prune",
    "threads.getState",
    "threads.getState at a checkpoint",
    "threads.getState with subgraphs",
    "threads.updateState",
    "threads.updateState forks",
    "threads.getHistory",
    "threads.getHistory of a subgraph",
    "runs.create",
    "runs.create with an assistant",
    "runs.wait",
    "runs.wait stops at an interrupt and is resumed",
    "runs.wait resumes by interrupt id, with an update and a goto",
    "runs.wait leaves a question by a goto to the end",
    "runs.wait stops before a node",
    "runs.wait raises a node's error",
    "runs.wait from a checkpoint",
    "runs.join",
    "runs.list",
    "runs.get",
    "runs.delete",
    "runs.cancel",
    "runs.cancel and wait",
    "runs.cancel rolls back",
    "runs.cancelMany by ids",
    "runs.cancelMany by status",
    "runs.create after some seconds",
    "runs.create with a webhook",
    "a busy thread",
    "a run that cuts in",
    "runs.stream values",
    "runs.stream updates",
    "runs.stream messages-tuple",
    "runs.stream messages",
    "runs.stream custom",
    "runs.stream events",
    "runs.stream tasks",
    "runs.stream checkpoints",
    "runs.stream debug",
    "runs.stream several modes",
    "runs.stream subgraphs",
    "runs.stream shows an interrupt",
    "runs.stream ends with a node's error",
    "runs.joinStream from the beginning and from an event",
    "runs.joinStream while it runs",
    "runs.stream goes on when its connection is cut",
    "runs.stream that is left is cancelled if asked",
    "stateless runs.wait",
    "stateless runs.stream",
    "stateless runs.create and joinStream",
    "runs.createBatch",
    "threads of stateless runs are not listed",
    "store.putItem and getItem",
    "store.deleteItem",
    "store.searchItems",
    "store.listNamespaces",
]

# The SDK has no method for these.
WITHOUT_METHOD = {
    "GET /",
    "HEAD /",
    "GET /ok",
    "HEAD /ok",
    "GET /info",
    "HEAD /info",
    "GET /health/started",
    "GET /health/live",
    "GET /health/ready",
    "GET /threads/abandoned",
    "GET /threads/{thread_id}/effects",
    "GET /threads/{thread_id}/progress",
    "GET /threads/{thread_id}/progress/stream",
    "GET /threads/{thread_id}/history",
}


@pytest_asyncio.fixture(scope="module")
async def report(script: RunScript) -> Report:
    return await script("sdk")


@pytest.mark.parametrize("name", CHECKS)
def test_check(report: Report, name: str) -> None:
    report.assert_passed(name)


def test_no_other_check(report: Report) -> None:
    assert list(report.checks) == CHECKS


def test_every_route(report: Report) -> None:
    requested = {_route(*request.split(" ")) for request in report.said["requests"]}
    assert requested == set(RULES) - WITHOUT_METHOD


def _route(method: str, path: str) -> str:
    """Returns the route that a request comes to: of those that match the one with the fewest parameters."""
    routes = [name.split(" ") for name in RULES]
    fitting = [own for verb, own in routes if verb == method and compile_path(own)[0].match(path)]
    return f"{method} {min(fitting, key=lambda own: own.count('{'))}"
