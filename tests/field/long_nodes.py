"""Nodes that take their time, in a task and in a thread, and count how often they ran."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import Any

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from tests.stack import stack


class State(TypedDict, total=False):
    done: str


async def runs_once(database_url: str, temporal: str, *, seconds: float, **settings: Any) -> None:
    """Runs a turn of one node that takes so long, of an asynchronous and of a synchronous one at the same time; fails
    unless each ran once and its result is its turn's.

    Args:
        database_url: PostgreSQL.
        temporal: its address.
        seconds: that the nodes take.
        **settings: of the worker.
    """
    runs: dict[str, int] = {"async": 0, "sync": 0}

    async def waits(state: State) -> Any:
        runs["async"] += 1
        await asyncio.sleep(seconds)
        return {"done": f"by run {runs['async']}"}

    def works(state: State) -> Any:
        runs["sync"] += 1
        time.sleep(seconds)
        return {"done": f"by run {runs['sync']}"}

    graphs = {"async": _one(waits), "sync": _one(works)}
    async with stack(database_url, temporal, graphs, **settings) as running:

        async def turn(graph: str) -> None:
            thread = str(uuid.uuid4())
            one = await running.submit(graph, thread=thread, input={"done": ""})
            row = await running.ended(one, seconds=seconds + 60)

            assert row["status"] == "success"
            assert runs[graph] == 1
            assert (await running.state(graph, thread)).values == {"done": "by run 1"}
            assert await running.activities(thread) == ["node"]

        await asyncio.gather(*(turn(graph) for graph in graphs))


def _one(node: Any) -> Any:
    builder: Any = StateGraph(State)
    builder.add_node("node", node).add_edge(START, "node")
    return builder.compile()
