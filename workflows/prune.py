"""Owns the pruning: a Temporal Schedule starts it, so that the event log does not grow for ever."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

from workflows import names


@workflow.defn(name=names.PRUNE_WORKFLOW)
class PruneWorkflow:
    """Deletes the events of turns that ended long ago."""

    @workflow.run
    async def run(self) -> int:
        """Returns how many events were deleted."""
        return await workflow.execute_activity(
            names.PRUNE,
            result_type=int,
            # Less than the schedule's interval: what is left is for the next time.
            start_to_close_timeout=timedelta(minutes=50),
            heartbeat_timeout=timedelta(minutes=1),
            retry_policy=RetryPolicy(maximum_attempts=3),
        )
