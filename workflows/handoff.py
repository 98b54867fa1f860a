"""Owns the hand-over: when a turn fails while others wait, this abandoned child starts the next run.

The failed run must close as Failed (so that Temporal's UI shows it and can reset it), which rules out
continue-as-new; the queue outlives it here.
"""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

from workflows import names
from workflows.contracts import HandOver


@workflow.defn(name=names.HANDOVER_WORKFLOW)
class HandOverWorkflow:
    """Submits waiting turns again once the run they waited for has closed."""

    @workflow.run
    async def run(self, request: HandOver) -> None:
        """Waits in the activity, which follows the failing run's close, and submits there."""
        await workflow.execute_activity(
            names.HAND_OVER,
            request,
            start_to_close_timeout=timedelta(hours=1),
            heartbeat_timeout=timedelta(seconds=request.defaults.hb),
            retry_policy=RetryPolicy(maximum_interval=timedelta(seconds=10)),
            summary=f"{len(request.queue)} waiting",
        )
