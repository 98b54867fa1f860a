"""A turn that was recorded and never submitted (its API process died) is started by the sweep, or by the next turn."""

from __future__ import annotations

import uuid

from adapter.store import requests
from tests.graphs.shapes import linear
from tests.graphs.slow import Switch, waiting
from tests.rows import record
from tests.servers import Postgres
from tests.stack import Stack, stack
from tests.workflow.resets import closed, reset
from workflows import names


async def _recorded_only(running: Stack, thread: str, text: str) -> str:
    await requests.create_thread(running.pool, thread, {}, if_exists="do_nothing")
    _, turn_id = await record(running.pool, thread, {"input": {"trail": [text]}})
    async with running.pool.connection() as conn:
        await conn.execute(
            "UPDATE turns.turn SET created_at = now() - interval '1 hour' WHERE turn_id = %s", (turn_id,)
        )
    return turn_id


async def test_the_sweep_starts_it(postgres: Postgres, temporal: str) -> None:
    async with stack(postgres.clone(), temporal, {"graph": linear()}) as running:
        turn = await _recorded_only(running, str(uuid.uuid4()), "stranded")
        submitted = await running.client.execute_workflow(
            names.SWEEP_WORKFLOW, id=f"sweep-{turn}", task_queue=running.settings.task_queue, result_type=int
        )

        assert submitted == 1
        assert (await running.ended(turn))["status"] == "success"


async def test_the_next_turn_lets_it_go_first(postgres: Postgres, temporal: str) -> None:
    async with stack(postgres.clone(), temporal, {"graph": linear()}) as running:
        thread = str(uuid.uuid4())
        stranded = await _recorded_only(running, thread, "stranded")
        await running.turn(thread=thread, input={"trail": ["next"]})

        assert (await running.ended(stranded))["status"] == "success"
        trail = (await running.state("graph", thread)).values["trail"]
        assert [word for word in trail if len(word) > 1] == ["stranded", "next"]


async def test_the_sweep_finds_a_turn_that_lost_its_run(postgres: Postgres, temporal: str) -> None:
    """Its run was ended by the reset of an older one, which had nothing more to do; a terminated one is left alone."""
    switch = Switch()
    switch.go.set()
    async with stack(postgres.clone(), temporal, {"graph": waiting(switch)}) as running:
        turns: list[str] = []
        for lost in (True, False):
            thread = str(uuid.uuid4())
            await running.turn(thread=thread, input={"trail": ["1"]})
            await closed(running, thread)
            old = await running.client.get_workflow_handle(names.workflow_id(thread)).describe()
            switch.go.clear()
            switch.started.clear()
            turns.append(await running.submit(thread=thread, input={"trail": ["2"]}))
            await switch.started.wait()
            if lost:
                await reset(running, thread, old.run_id)
                await closed(running, thread)
            else:
                await running.client.get_workflow_handle(names.workflow_id(thread)).terminate()
            switch.go.set()
        async with running.pool.connection() as conn:
            await conn.execute("UPDATE turns.turn SET updated_at = now() - interval '1 hour'")
        submitted = await running.client.execute_workflow(
            names.SWEEP_WORKFLOW,
            id=f"sweep-{turns[0]}",
            task_queue=running.settings.task_queue,
            result_type=int,
        )

        assert submitted == 1
        assert (await running.ended(turns[0]))["status"] == "success"
