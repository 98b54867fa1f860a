"""Wide fan-outs run no more activities, and no more nodes, at a time than told."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from typing import Any

from langgraph.graph import START
from langgraph.types import Send

from tests.graphs.calls import CALLS
from tests.graphs.shapes import send_to_many
from tests.graphs.table import Trail, graph_of
from tests.servers import Postgres
from tests.stack import stack


async def test_a_fan_out_beyond_the_limit_runs_in_chunks(postgres: Postgres, temporal: str) -> None:
    CALLS.clear()
    async with stack(postgres.clone(), temporal, {"graph": send_to_many()}, parallel_effects=5) as running:
        thread = str(uuid.uuid4())
        await running.turn(thread=thread, input={"trail": [], "n": 23})
        trail = (await running.state("graph", thread)).values["trail"]
        activities = Counter(await running.activities(thread))

    assert trail == ["plan", *(f"work{i}" for i in range(23)), "sum"]
    assert Counter(CALLS) == {"plan": 1, "work": 23, "sum": 1}
    assert activities["work"] == 5


async def test_a_worker_runs_no_more_nodes_at_a_time_than_told(postgres: Postgres, temporal: str) -> None:
    started, go = asyncio.Semaphore(0), asyncio.Semaphore(0)
    running: list[int] = [0]

    async def work(state: Trail) -> Any:
        running.append(running[-1] + 1)
        started.release()
        await go.acquire()
        running.append(running[-1] - 1)
        return {"trail": ["work"]}

    builder = graph_of(Trail)
    builder.add_node("work", work)
    builder.add_conditional_edges(START, _six, ["work"])
    graphs = {"graph": builder.compile()}
    async with stack(postgres.clone(), temporal, graphs, concurrent_effects=2) as it:
        turn = await it.submit(thread=str(uuid.uuid4()), input={"trail": []})
        await started.acquire()
        await started.acquire()
        await asyncio.sleep(0.5)  # time for a third one, if it could
        for _ in range(6):
            go.release()
        assert (await it.ended(turn))["status"] == "success"

    assert max(running) == 2


def _six(state: Trail) -> list[Send]:
    return [Send("work", {}) for _ in range(6)]
