"""Cancel is cooperative: the node's `finally` runs, the thread stays at its last checkpoint, the next turn works."""

from __future__ import annotations

import uuid

from adapter.store import requests, stops
from tests.graphs.slow import Switch, waiting
from tests.servers import Postgres
from tests.stack import stack
from workflows import names


async def test_a_cancelled_turn_stops_at_its_last_checkpoint(postgres: Postgres, temporal: str) -> None:
    switch = Switch()
    async with stack(postgres.clone(), temporal, {"graph": waiting(switch)}) as running:
        thread = str(uuid.uuid4())
        turn = await running.submit(thread=thread, input={"trail": []})
        await switch.started.wait()
        await running.client.get_workflow_handle(names.workflow_id(thread)).signal(names.CANCEL, turn)
        await stops.notify_cancel(running.pool, turn)
        row = await running.ended(turn)
        state = await running.state("graph", thread)

        assert row["status"] == "interrupted"
        assert switch.cleaned == ["wait"]
        assert state.values["trail"] == ["first"]
        assert (await requests.get_thread(running.pool, thread))["status"] == "interrupted"

        switch.go.set()
        assert (await running.turn(thread=thread, input={"trail": ["again"]}))["status"] == "success"
        assert (await running.state("graph", thread)).values["trail"] == [
            "first",
            "again",
            "first",
            "wait",
            "last",
        ]


async def test_a_turn_that_waits_is_cancelled_by_its_row(postgres: Postgres, temporal: str) -> None:
    switch = Switch()
    async with stack(postgres.clone(), temporal, {"graph": waiting(switch)}) as running:
        thread = str(uuid.uuid4())
        first, second, third = [
            await running.submit(thread=thread, input={"trail": [str(i)]}) for i in range(3)
        ]
        await switch.started.wait()

        assert await stops.cancel_pending(running.pool, second)
        assert not await stops.cancel_pending(running.pool, first)
        switch.go.set()
        rows = [await running.ended(turn) for turn in (first, second, third)]

        assert [row["status"] for row in rows] == ["success", "interrupted", "success"]
        trail = (await running.state("graph", thread)).values["trail"]
        assert [word for word in trail if word.isdigit()] == ["0", "2"]


async def test_cancelling_the_workflow_in_temporals_ui_stops_the_turn(
    postgres: Postgres, temporal: str
) -> None:
    switch = Switch()
    async with stack(
        postgres.clone(), temporal, {"graph": waiting(switch)}, heartbeat_timeout=2.0
    ) as running:
        thread = str(uuid.uuid4())
        turn = await running.submit(thread=thread, input={"trail": []})
        await switch.started.wait()
        await running.client.get_workflow_handle(names.workflow_id(thread)).cancel()

        assert (await running.ended(turn))["status"] == "interrupted"
