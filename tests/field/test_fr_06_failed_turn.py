"""FR-6: when retries were exhausted, the thread stayed busy for ever. Here a failed turn leaves its thread usable at
once, whatever made it fail: the next message is taken by a strategy that refuses a busy thread, and works.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy

from tests.api.graphs import State
from tests.api.serving import Serving, in_front_of, serving
from tests.processes import ROOT, faulty
from tests.servers import Postgres


class Refused(Exception):
    pass


def _failing(*, tries: int = 1, timeout: float | None = None) -> Any:
    async def node(state: State) -> Any:
        match state.get("answer"):
            case "raise":
                raise Refused
            case "hang":
                await asyncio.Event().wait()
            case "store what cannot be stored":
                return {"answer": "\x00"}
            case _:
                return {"trail": ["fine"]}

    def again(state: State) -> str:
        return "node" if state.get("answer") == "loop" else "__end__"

    policy = RetryPolicy(max_attempts=tries, initial_interval=0.01, jitter=False, retry_on=Refused)
    builder: Any = StateGraph(State)
    builder.add_node("node", node, retry_policy=policy, timeout=timeout)
    builder.add_edge(START, "node").add_conditional_edges("node", again)
    return builder.compile()


@pytest_asyncio.fixture(scope="module")
async def api(postgres: Postgres, temporal: str) -> AsyncIterator[Serving]:
    graphs = {"graph": _failing(), "retried": _failing(tries=3), "timed": _failing(timeout=0.1)}
    async with serving(postgres.clone(), temporal, graphs) as it:
        yield it


@pytest.mark.parametrize(
    ("graph", "fails", "error"),
    [
        ("graph", {"trail": [], "answer": "raise"}, "Refused"),
        ("retried", {"trail": [], "answer": "raise"}, "Refused"),
        ("timed", {"trail": [], "answer": "hang"}, "NodeTimeoutError"),
        ("graph", {"trail": [], "answer": "loop"}, "GraphRecursionError"),
        ("graph", {"trail": [], "answer": "store what cannot be stored"}, "NotStorable"),
        ("graph", {"trail": 7}, "TypeError"),  # fails before its first node
    ],
)
async def test_the_next_message_is_taken_at_once(
    api: Serving, graph: str, fails: dict[str, Any], error: str
) -> None:
    thread = await api.thread()
    failed = await api.wait(thread, graph, input=fails, config={"recursion_limit": 3})
    told = (await api.http.get(f"/threads/{thread}")).json()
    following = await api.wait(thread, graph, input={"answer": ""}, multitask_strategy="reject")

    assert failed["__error__"]["error"] == error
    assert (told["status"], told["error"]["error"]) == ("error", error)
    assert following["trail"][-1] == "fine"
    assert (await api.http.get(f"/threads/{thread}")).json()["status"] == "idle"


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_a_node_whose_worker_dies_each_time(database_url: str, temporal: str, tmp_path: Path) -> None:
    config = ROOT / "tests" / "project" / "langgraph.json"
    async with faulty(
        database_url, temporal, tmp_path, config=config, env={"TURNS_NODE_ATTEMPTS": "2"}
    ) as it:
        it.stack.settings = it.stack.settings.model_copy(update={"node_attempts": 2})
        thread = str(uuid.uuid4())
        doomed = it.workers.start()
        turn = await it.stack.submit("deadly", thread=thread, input={"trail": [], "n": 1})
        await doomed.ended()
        await it.workers.start().ended()
        it.workers.start()
        failed = await it.stack.ended(turn)
        async with in_front_of(it.stack) as api:
            assert (await api.http.get(f"/threads/{thread}")).json()["status"] == "error"
            following = await api.wait(thread, "deadly", input={"n": 0}, multitask_strategy="reject")

        assert failed["status"] == "error"
        assert following["trail"] == ["lived"]
