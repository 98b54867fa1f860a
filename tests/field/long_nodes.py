"""A node that takes its time, in a task or in a thread, and counts how often it ran."""

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


async def runs_once(database_url: str, temporal: str, *, kind: str, seconds: float, **settings: Any) -> None:
    """Runs a turn of one node that takes so long; fails unless it ran once and its result is the turn's.

    Args:
        database_url: PostgreSQL.
        temporal: its address.
        kind: "async" or "sync".
        seconds: that the node takes.
        **settings: of the worker.
    """
    runs = list[str]()

    async def waits(state: State) -> Any:
        runs.append("async")
        await asyncio.sleep(seconds)
        return {"done": f"by run {len(runs)}"}

    def works(state: State) -> Any:
        runs.append("sync")
        time.sleep(seconds)
        return {"done": f"by run {len(runs)}"}

    builder: Any = StateGraph(State)
    builder.add_node("node", waits if kind == "async" else works).add_edge(START, "node")
    async with stack(database_url, temporal, {"graph": builder.compile()}, **settings) as running:
        thread = str(uuid.uuid4())
        turn = await running.submit(thread=thread, input={"done": ""})
        row = await running.ended(turn, seconds=seconds + 60)

        assert row["status"] == "success"
        assert runs == [kind]
        assert (await running.state("graph", thread)).values == {"done": "by run 1"}
        assert await running.activities(thread) == ["turn:begin", "node"]
