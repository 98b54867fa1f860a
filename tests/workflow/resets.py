"""Resets of workflow runs, as Temporal's UI and command line make them."""

from __future__ import annotations

import contextlib
import uuid

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, ResetReapplyExcludeType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import WorkflowFailureError

from tests.stack import Stack
from workflows import names

_SIGNAL = ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL


async def reset(
    running: Stack,
    thread: str,
    run_id: str | None = None,
    *,
    after: str | None = None,
    back: int = 1,
    without_signals: bool = False,
) -> str:
    """Resets a run, the latest without `run_id`; returns the new run's id.

    Args:
        running: the stack.
        thread: whose run.
        run_id: which run.
        after: the activity after whose first completion the run shall go on; "" is the very beginning; None is the
            last workflow task, which is the UI's first choice.
        back: which workflow task from the end, for no `after`.
        without_signals: whether later signals are left out.
    """
    workflow_id = names.workflow_id(thread)
    handle = running.client.get_workflow_handle(workflow_id, run_id=run_id)
    history = await handle.fetch_history()
    done = [e for e in history.events if e.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED]
    if after is None:
        finish = done[-back].event_id
    elif not after:
        finish = done[0].event_id
    else:
        scheduled = {
            e.event_id
            for e in history.events
            if e.activity_task_scheduled_event_attributes.activity_type.name == after
        }
        completed = min(
            e.event_id
            for e in history.events
            if e.activity_task_completed_event_attributes.scheduled_event_id in scheduled
        )
        finish = min(e.event_id for e in done if e.event_id > completed)
    made = await running.client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace="default",
            workflow_execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id or ""),
            reason="try again",
            workflow_task_finish_event_id=finish,
            request_id=str(uuid.uuid4()),
            reset_reapply_exclude_types=[_SIGNAL] if without_signals else [],
        )
    )
    return made.run_id


async def closed(running: Stack, thread: str, run_id: str | None = None) -> None:
    """Waits until a run, and what it continued as, has closed."""
    handle = running.client.get_workflow_handle(names.workflow_id(thread), run_id=run_id)
    with contextlib.suppress(WorkflowFailureError):
        await handle.result()
