"""Owns the sweep: a Temporal Schedule starts it, so that a turn whose API process died is not left pending."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

from workflows import names


@workflow.defn(name=names.SWEEP_WORKFLOW)
class SweepWorkflow:
    """Submits stranded turns."""

    @workflow.run
    async def run(self) -> int:
        """Returns how many turns were submitted."""
        return await workflow.execute_activity(
            names.SWEEP,
            result_type=int,
            start_to_close_timeout=timedelta(minutes=5),
            heartbeat_timeout=timedelta(seconds=30),
            retry_policy=RetryPolicy(maximum_attempts=3),
        )
