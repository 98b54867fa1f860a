"""What a turn did that ended well stays, whatever is told to it afterwards or meanwhile."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from adapter.store.pool import fetch_one
from api.turn_gateway import TurnGateway
from tests.graphs.slow import Switch
from tests.servers import Postgres
from tests.stack import Stack, stack
from tests.undo.booked import State, booking, chain, roll_back, unbooked
from tests.workflow.resets import closed, reset


def _held(switch: Switch) -> Any:
    async def wait(state: State) -> Any:
        switch.started.set()
        await switch.go.wait()
        return {"trail": ["wait"]}

    return wait


async def _row(running: Stack, turn: str) -> Any:
    return await fetch_one(running.pool, "get_turn", turn_id=turn)


async def test_a_rollback_that_comes_while_the_end_is_stored(postgres: Postgres, temporal: str) -> None:
    switch = Switch()
    async with stack(
        postgres.clone(), temporal, {"graph": chain(a=booking("a"), wait=_held(switch)).compile()}
    ) as running:
        thread = str(uuid.uuid4())
        turn = await running.submit(thread=thread, input={"trail": ["x"]})
        await switch.started.wait()
        async with running.pool.connection() as conn, conn.transaction():
            await conn.execute("SELECT 1 FROM turns.thread WHERE thread_id = %s FOR UPDATE", (thread,))
            switch.go.set()
            while not await _waits_for_a_lock(running):
                await asyncio.sleep(0.05)
            await roll_back(running, thread, turn)
            await asyncio.sleep(1)
        await closed(running, thread)

        row = await _row(running, turn)
        assert row is None or (row["status"], unbooked()) == ("success", [])
        trail = (await running.state("graph", thread)).values.get("trail", [])
        assert trail == ([] if row is None else ["x", "a", "wait"])


async def _waits_for_a_lock(running: Stack) -> bool:
    async with running.pool.connection() as conn:
        cursor = await conn.execute(
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        return await cursor.fetchone() is not None


async def test_a_rollback_that_comes_after_the_end(postgres: Postgres, temporal: str) -> None:
    async with stack(postgres.clone(), temporal, {"graph": chain(a=booking("a")).compile()}) as running:
        thread = str(uuid.uuid4())
        turn = str((await running.turn(thread=thread, input={"trail": ["x"]}))["turn_id"])
        await closed(running, thread)
        gateway = TurnGateway(running.client, running.pool, running.settings)
        await gateway.cancel(thread, turn, roll_back=True)
        await closed(running, thread)

        assert (await _row(running, turn))["status"] == "success"
        assert (await running.state("graph", thread)).values["trail"] == ["x", "a"]
        assert unbooked() == []


async def test_a_reset_whose_run_fails_at_once(postgres: Postgres, temporal: str) -> None:
    broken: list[str] = []
    graph = chain(a=booking("a")).compile()

    def factory() -> Any:
        if broken:
            raise RuntimeError("no model configured")
        return graph

    async with stack(postgres.clone(), temporal, {"graph": factory}) as running:
        thread = str(uuid.uuid4())
        turn = str((await running.turn(thread=thread, input={"trail": ["x"]}))["turn_id"])
        await closed(running, thread)
        broken.append("yes")
        await reset(running, thread, after="")
        await closed(running, thread)

        assert (await _row(running, turn))["status"] == "success"
        assert unbooked() == []
