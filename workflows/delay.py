"""Owns the delay of a turn: Temporal starts this workflow when the turn is due, and not before."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

from workflows import names
from workflows.contracts import Delayed


@workflow.defn(name=names.DELAY_WORKFLOW)
class DelayWorkflow:
    """Submits a turn that is due."""

    @workflow.run
    async def run(self, request: Delayed) -> None:
        """Gives the turn its place behind what was accepted meanwhile, unless it was cancelled."""
        await workflow.execute_activity(
            names.FALL_DUE,
            request,
            start_to_close_timeout=timedelta(minutes=5),
            heartbeat_timeout=timedelta(seconds=request.defaults.hb),
            retry_policy=RetryPolicy(maximum_interval=timedelta(seconds=10)),
        )
