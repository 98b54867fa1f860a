"""Synchronous nodes that block their threads do not keep other turns from running."""

from __future__ import annotations

import asyncio
import threading
import uuid
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from tests.servers import Postgres
from tests.stack import stack


class State(TypedDict, total=False):
    done: bool


@pytest.mark.slow
async def test_many_blocked_threads_leave_room(postgres: Postgres, temporal: str) -> None:
    go = threading.Event()
    blocked = threading.Semaphore(0)

    def blocks(state: State) -> Any:
        blocked.release()
        go.wait(30)
        return {"done": True}

    def passes(state: State) -> Any:
        return {"done": True}

    def graph(node: Any) -> Any:
        builder: Any = StateGraph(State)
        builder.add_node("node", node).add_edge(START, "node")
        return builder.compile()

    graphs = {"blocks": graph(blocks), "passes": graph(passes)}
    async with stack(postgres.clone(), temporal, graphs) as running:
        waiting = [await running.submit("blocks", thread=str(uuid.uuid4()), input={}) for _ in range(40)]
        for _ in waiting:
            assert await asyncio.get_running_loop().run_in_executor(None, blocked.acquire, True, 20)
        row = await running.turn("passes", thread=str(uuid.uuid4()), input={"done": False})
        go.set()
        ended = [await running.ended(turn) for turn in waiting]

    assert row["status"] == "success"
    assert {r["status"] for r in ended} == {"success"}
