"""Owns the calling of a turn's webhook: an abandoned child of the turn, so that no later turn waits for it."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

from workflows import names
from workflows.contracts import Webhook


@workflow.defn(name=names.WEBHOOK_WORKFLOW)
class WebhookWorkflow:
    """Tells somebody that a turn has ended."""

    @workflow.run
    async def run(self, request: Webhook) -> str:
        """Calls until the answer is final: accepted, refused, or twelve times not there."""
        try:
            return await workflow.execute_activity(
                names.WEBHOOK,
                request,
                result_type=str,
                start_to_close_timeout=timedelta(seconds=60),
                retry_policy=RetryPolicy(maximum_interval=timedelta(minutes=5), maximum_attempts=12),
            )
        except ActivityError:
            return "given up"
