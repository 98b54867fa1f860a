# pyright: basic, reportMissingImports=false
"""One worker process whose turns are activities that do nothing: no graph, no state, nothing stored."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta

import uvloop
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker


@activity.defn
async def effect() -> None:
    """Does nothing."""


@workflow.defn
class Turn:
    """So many activities, one after the other."""

    @workflow.run
    async def run(self, effects: int) -> int:
        """Runs the turn."""
        for _ in range(effects):
            await workflow.execute_activity(effect, start_to_close_timeout=timedelta(seconds=60))
        return effects


async def main() -> None:
    """Works until it is killed."""
    client = await Client.connect(os.environ["TEMPORAL_ADDRESS"])
    worker = Worker(
        client,
        task_queue=os.environ["BENCH_TASK_QUEUE"],
        workflows=[Turn],
        activities=[effect],
        workflow_runner=UnsandboxedWorkflowRunner(),
    )
    async with worker:
        print("bare worker ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main())
