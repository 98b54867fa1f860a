"""Reset in Temporal's UI retries the failed node, with the same idempotency key (I4, I7)."""

from __future__ import annotations

import uuid

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest

from tests.graphs.slow import Switch, failing
from tests.servers import Postgres
from tests.stack import Stack, stack
from workflows import names


async def _reset(running: Stack, thread: str, run_id: str | None = None) -> None:
    """What the UI's "Reset" does with "last workflow task"."""
    handle = running.client.get_workflow_handle(names.workflow_id(thread), run_id=run_id)
    history = await handle.fetch_history()
    last = max(
        e.event_id for e in history.events if e.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
    )
    await running.client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace="default",
            workflow_execution=WorkflowExecution(workflow_id=names.workflow_id(thread), run_id=run_id or ""),
            reason="try again",
            workflow_task_finish_event_id=last,
            request_id=str(uuid.uuid4()),
        )
    )


async def test_reset_to_the_last_workflow_task_retries_the_failed_node(
    postgres: Postgres, temporal: str
) -> None:
    switch = Switch(failures=2)
    switch.go.set()
    async with stack(postgres.clone(), temporal, {"graph": failing(switch)}) as running:
        thread = str(uuid.uuid4())
        turn = await running.submit(thread=thread, input={"trail": []}, stream_mode=["values", "updates"])
        assert (await running.ended(turn))["status"] == "error"

        for expected in ("error", "success"):
            await _closed(running, thread)
            await _reset(running, thread)
            await _closed(running, thread)
            row = await running.ended(turn)
            assert row["status"] == expected

        assert len(switch.keys) == 3
        assert len(set(switch.keys)) == 1
        assert (await running.state("graph", thread)).values["trail"] == ["first", "pay", "last"]
        updates = [next(iter(data)) for name, data in await running.events(turn) if name == "updates"]
        assert updates == ["first", "pay", "last"]


async def _closed(running: Stack, thread: str) -> None:
    handle = running.client.get_workflow_handle(names.workflow_id(thread))
    try:
        await handle.result()
    except Exception:
        return


async def test_a_turn_that_later_turns_built_on_is_not_tried_again(postgres: Postgres, temporal: str) -> None:
    switch = Switch(failures=1)
    switch.go.set()
    async with stack(postgres.clone(), temporal, {"graph": failing(switch)}) as running:
        thread = str(uuid.uuid4())
        failed = await running.submit(thread=thread, input={"trail": []})
        await running.ended(failed)
        await _closed(running, thread)
        run = await running.client.get_workflow_handle(names.workflow_id(thread)).describe()
        await running.turn(thread=thread, input={"trail": ["later"]})
        await _closed(running, thread)
        before = (await running.state("graph", thread)).values
        await _reset(running, thread, run.run_id)
        await _closed(running, thread)
        row = await running.ended(failed)

        assert row["status"] == "error"
        assert len(switch.keys) == 2
        assert (await running.state("graph", thread)).values == before
