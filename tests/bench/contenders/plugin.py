"""Owns the workers of Temporal's LangGraph plugin; its turns are started here, by Temporal's client, without HTTP."""

from __future__ import annotations

import asyncio
import time
import uuid
from datetime import timedelta
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.contrib.workflow_streams import WorkflowStreamClient

from tests.bench.contenders.base import Contender, Setup
from tests.bench.wire import Refused

_TELLING = (EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED, EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED)
# After so many seconds without an answer to a turn its history is asked why. A workflow task that fails is tried for
# ever, so a conversation that has become too long says nothing.
PATIENCE_SECONDS = 90.0
PATIENCE_WITH_UPDATES_SECONDS = 20.0


class Plugin(Contender):
    """A workflow a conversation; the state is in the workflow, so there is no database."""

    name = "plugin"
    packages = ("temporalio-langgraph", "langgraph", "temporalio")
    one_history = True

    async def start(self, setup: Setup) -> None:
        """See the base class."""
        self.client = await Client.connect(self.servers.temporal)
        self._queue = f"plugin-{uuid.uuid4().hex[:8]}"
        self._environment = {
            "TEMPORAL_ADDRESS": self.servers.temporal,
            "BENCH_TASK_QUEUE": self._queue,
            "BENCH_START_TO_CLOSE": str(setup.lost_after or 60),
            "BENCH_DICTS": "1",
            **({"BENCH_WRITE": "tokens"} if setup.write else {}),
        }
        self._going_on: dict[str, WorkflowHandle[Any, Any]] = {}
        for log in [self._worker() for _ in range(setup.workers)]:
            await self.said(log, "plugin worker ready")

    async def turn(self, graph: str, thread: str, content: str, steps: int) -> None:
        """See the base class: an update of the conversation that goes on, or else a workflow of its own."""
        answered: Any
        patience = PATIENCE_WITH_UPDATES_SECONDS if thread in self._going_on else PATIENCE_SECONDS
        if (handle := self._going_on.get(thread)) is not None:
            asking = asyncio.create_task(handle.execute_update("turn", args=[graph, content]))
        else:
            handle = self.client.get_workflow_handle(thread)
            asking = asyncio.create_task(
                self.client.execute_workflow(
                    "Turn",
                    args=[graph, content],
                    id=thread,
                    task_queue=self._queue,
                    execution_timeout=timedelta(minutes=5),
                )
            )
        try:
            answered = await asyncio.wait_for(asking, patience)
        except Exception as exc:
            raise Refused(await self._why(handle, exc)) from exc
        if answered["steps"] != steps:
            raise Refused(f"{steps} steps were to be counted, not {answered['steps']}")

    async def have(self, thread: str, messages: int, size: int) -> int:
        """See the base class: the workflow makes them itself."""
        self._going_on[thread] = await self.client.start_workflow(
            "Conversation",
            args=[messages, size],
            id=thread,
            task_queue=self._queue,
            execution_timeout=timedelta(minutes=5),
        )
        return 0

    async def tokens(self, graph: str, thread: str) -> list[tuple[float, float]]:
        """See the base class."""
        count = int(graph.rpartition("_")[2])
        got: list[tuple[float, float]] = []
        handle = await self.client.start_workflow(
            "Streamed", args=[graph, "talk"], id=thread, task_queue=self._queue,
            execution_timeout=timedelta(minutes=5),
        )  # fmt: skip
        topic = WorkflowStreamClient.create(self.client, thread).topic("tokens", type=str)
        async for item in topic.subscribe(from_offset=0):
            if item.data.strip():
                got.append((int(item.data) / 1e9, time.monotonic()))
            if len(got) == count:
                break
        await handle.result()
        return got

    async def history_bytes(self, thread: str) -> int | None:
        """See the base class: of the whole conversation so far."""
        history = await self.client.get_workflow_handle(thread).fetch_history()
        return sum(event.ByteSize() for event in history.events)

    def replace(self) -> None:
        """See the base class."""
        self._worker()

    def _worker(self) -> Any:
        return self.run("worker", ("plugin_worker.py",), self._environment)

    async def _why(self, handle: WorkflowHandle[Any, Any], exc: Exception) -> str:
        """Returns what the history says of a turn that did not end; terminates it."""
        told = "no answer in time" if isinstance(exc, TimeoutError) else f"{type(exc).__name__}: {exc}"
        if isinstance(exc, WorkflowFailureError):
            return f"{exc.cause}"
        history = await handle.fetch_history()
        for event in history.events:
            if event.event_type in _TELLING:
                failed = event.workflow_task_failed_event_attributes
                ended = event.workflow_execution_terminated_event_attributes
                told = failed.failure.message or ended.reason or "terminated"
        return told[:200]
