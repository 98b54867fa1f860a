"""Wide fan-outs: nothing lost (FR-3), nothing run twice, and no more activities at a time than told."""

from __future__ import annotations

import uuid
from collections import Counter

from tests.graphs.calls import CALLS
from tests.graphs.shapes import send_to_many
from tests.servers import Postgres
from tests.stack import stack


async def test_fifty_sends_keep_all_writes(postgres: Postgres, temporal: str) -> None:
    CALLS.clear()
    async with stack(postgres.clone(), temporal, {"graph": send_to_many()}) as running:
        thread = str(uuid.uuid4())
        await running.turn(thread=thread, input={"trail": [], "n": 50})
        trail = (await running.state("graph", thread)).values["trail"]
        activities = Counter(await running.activities(thread))

    assert trail == ["plan", *(f"work{i}" for i in range(50)), "sum"]
    assert Counter(CALLS) == {"plan": 1, "work": 50, "sum": 1}
    assert activities["work"] == 50


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
