# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""One worker process of Temporal's LangGraph plugin."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta

import uvloop
from graphs import BUILDERS
from plugin_workflows import Conversation, Streamed, Turn
from temporalio.client import Client
from temporalio.langgraph import LangGraphPlugin
from temporalio.worker import Worker

# With a topic, the plugin refuses workflows that have no stream.
TOPIC = os.environ.get("BENCH_WRITE")


async def main() -> None:
    """Works until it is killed."""
    client = await Client.connect(os.environ["TEMPORAL_ADDRESS"])
    plugin = LangGraphPlugin(
        graphs=BUILDERS,
        default_activity_options={
            "start_to_close_timeout": timedelta(seconds=float(os.environ["BENCH_START_TO_CLOSE"]))
        },
        streaming_topic=TOPIC,
    )
    worker = Worker(
        client,
        task_queue=os.environ["BENCH_TASK_QUEUE"],
        workflows=[Streamed] if TOPIC else [Turn, Conversation],
        plugins=[plugin],
    )
    async with worker:
        print("plugin worker ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main())
