"""Owns the calls that bring a turn to Temporal: update-with-start, used by the API and by hand-overs, and the delay."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from temporalio.client import (
    Client,
    RPCError,
    RPCStatusCode,
    WithStartWorkflowOperation,
    WorkflowUpdateFailedError,
)
from temporalio.common import WorkflowIDConflictPolicy

from workflows import names
from workflows.contracts import Defaults, Delayed, Submit, Submitted, TurnInput

_TRIES = 20


async def submit(
    client: Client, thread_id: str, request: Submit, *, task_queue: str, defaults: Defaults
) -> Submitted:
    """Starts the thread's run with this turn, or adds the turn to the run under way.

    The run may close just while the update is on its way; the turn was not taken then, and is submitted again.

    Raises:
        RPCError: Temporal is not reachable, or no worker took the update in time.
    """
    for attempt in range(_TRIES):
        start: WithStartWorkflowOperation[Any, Any] = WithStartWorkflowOperation(
            names.TURN_WORKFLOW,
            TurnInput(thread_id, (), defaults),
            id=names.workflow_id(thread_id),
            task_queue=task_queue,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            static_summary=f"thread {thread_id}",
        )
        try:
            return await client.execute_update_with_start_workflow(
                names.SUBMIT, request, start_workflow_operation=start, result_type=Submitted
            )
        except (RPCError, WorkflowUpdateFailedError) as exc:
            if attempt == _TRIES - 1 or not _run_closed(exc):
                raise
            await asyncio.sleep(0.02 * (attempt + 1))
    raise AssertionError("unreachable")


async def submit_later(client: Client, request: Delayed, *, seconds: float, task_queue: str) -> None:
    """Has a turn submitted after a time; calling it again for the same turn changes nothing.

    Raises:
        RPCError: Temporal is not reachable.
    """
    await client.start_workflow(
        names.DELAY_WORKFLOW,
        request,
        id=f"delayed/{request.turn_id}",
        task_queue=task_queue,
        start_delay=timedelta(seconds=seconds),
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        static_summary=f"thread {request.thread_id}",
    )


def _run_closed(exc: RPCError | WorkflowUpdateFailedError) -> bool:
    if isinstance(exc, WorkflowUpdateFailedError):
        return True  # the update has no validator and its handler cannot fail
    return exc.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.ABORTED, RPCStatusCode.FAILED_PRECONDITION)
