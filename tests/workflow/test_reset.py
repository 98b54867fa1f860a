"""Reset in Temporal's UI retries the failed node, with the same idempotency key (I4, I7)."""

from __future__ import annotations

import uuid

import pytest
from temporalio.client import WorkflowExecutionStatus

from tests.graphs.shapes import interrupts_in_parallel_subgraphs
from tests.graphs.slow import Switch, failing
from tests.servers import Postgres
from tests.stack import stack
from tests.workflow.resets import closed, reset
from workflows import names


@pytest.mark.parametrize("back", [1, 2], ids=["last", "that stored the failure"])
async def test_reset_to_the_last_workflow_task_retries_the_failed_node(
    postgres: Postgres, temporal: str, back: int
) -> None:
    switch = Switch(failures=2)
    switch.go.set()
    async with stack(postgres.clone(), temporal, {"graph": failing(switch)}) as running:
        thread = str(uuid.uuid4())
        turn = await running.submit(thread=thread, input={"trail": []}, stream_mode=["values", "updates"])
        assert (await running.ended(turn))["status"] == "error"

        for expected in ("error", "success"):
            await closed(running, thread)
            await reset(running, thread, back=back)
            await closed(running, thread)
            row = await running.ended(turn)
            assert row["status"] == expected

        assert len(switch.keys) == 3
        assert len(set(switch.keys)) == 1
        assert (await running.state("graph", thread)).values["trail"] == ["first", "pay", "last"]
        updates = [next(iter(data)) for name, data in await running.events(turn) if name == "updates"]
        assert updates == ["first", "pay", "last"]


async def test_a_failed_turn_that_handed_its_queue_over(postgres: Postgres, temporal: str) -> None:
    """The hand-over stands in the history that the reset run replays."""
    switch = Switch(failures=1)
    async with stack(postgres.clone(), temporal, {"graph": failing(switch)}) as running:
        thread = str(uuid.uuid4())
        failed = await running.submit(thread=thread, input={"trail": ["1"]})
        old = await running.client.get_workflow_handle(names.workflow_id(thread)).describe()
        later = await running.submit(thread=thread, input={"trail": ["2"]})
        await switch.started.wait()
        switch.go.set()
        await running.ended(later)
        await closed(running, thread)
        await reset(running, thread, old.run_id)
        await closed(running, thread)

        assert [(await running.ended(turn))["status"] for turn in (failed, later)] == ["error", "success"]
        history = await running.history(thread)
        assert not [e for e in history.events if e.HasField("workflow_task_failed_event_attributes")][1:]


async def test_a_turn_that_later_turns_built_on_is_not_tried_again(postgres: Postgres, temporal: str) -> None:
    switch = Switch(failures=1)
    switch.go.set()
    async with stack(postgres.clone(), temporal, {"graph": failing(switch)}) as running:
        thread = str(uuid.uuid4())
        failed = await running.submit(thread=thread, input={"trail": []})
        await running.ended(failed)
        await closed(running, thread)
        run = await running.client.get_workflow_handle(names.workflow_id(thread)).describe()
        await running.turn(thread=thread, input={"trail": ["later"]})
        await closed(running, thread)
        before = (await running.state("graph", thread)).values
        await reset(running, thread, run.run_id)
        await closed(running, thread)
        row = await running.ended(failed)

        assert row["status"] == "error"
        assert len(switch.keys) == 2
        assert (await running.state("graph", thread)).values == before


async def test_a_turn_that_failed_before_it_began(postgres: Postgres, temporal: str) -> None:
    """Its failure is told again, not a success."""
    async with stack(postgres.clone(), temporal, {"graph": interrupts_in_parallel_subgraphs()}) as running:
        thread = str(uuid.uuid4())
        await running.turn(thread=thread, input={"trail": []})
        refused = await running.submit(thread=thread, command={"resume": "one answer for several questions"})
        await running.ended(refused)
        await closed(running, thread)
        events = len(await running.events(refused))
        await reset(running, thread)
        await closed(running, thread)

        assert (await running.ended(refused))["status"] == "error"
        assert len(await running.events(refused)) > events
        described = await running.client.get_workflow_handle(names.workflow_id(thread)).describe()
        assert described.status == WorkflowExecutionStatus.FAILED
