"""Owns the expiry: a Temporal Schedule starts it, so that threads and items with a lifetime end when it is over."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

from workflows import names


@workflow.defn(name=names.EXPIRE_WORKFLOW)
class ExpireWorkflow:
    """Deletes, or reduces to their latest checkpoint, threads whose lifetime is over."""

    @workflow.run
    async def run(self) -> int:
        """Returns how many threads were deleted or reduced."""
        return await workflow.execute_activity(
            names.EXPIRE,
            result_type=int,
            start_to_close_timeout=timedelta(minutes=50),
            heartbeat_timeout=timedelta(minutes=1),
            retry_policy=RetryPolicy(maximum_attempts=3),
        )
