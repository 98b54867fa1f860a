"""Owns a worker whose turns are empty activities, which is what Temporal alone costs."""

from __future__ import annotations

import uuid

from temporalio.client import Client

from tests.bench.contenders.base import Contender, Setup
from tests.bench.wire import Refused


class Bare(Contender):
    """A workflow a turn, an activity an effect, started and awaited by Temporal's client; no graph and no state."""

    name = "bare"
    packages = ("temporalio",)

    async def start(self, setup: Setup) -> None:
        """See the base class."""
        self.client = await Client.connect(self.servers.temporal)
        self._queue = f"bare-{uuid.uuid4().hex[:8]}"
        environment = {"TEMPORAL_ADDRESS": self.servers.temporal, "BENCH_TASK_QUEUE": self._queue}
        for log in [self.run("worker", ("bare_worker.py",), environment) for _ in range(setup.workers)]:
            await self.said(log, "bare worker ready")

    def has(self, graph: str) -> bool:
        """See the base class: effects one after the other."""
        return graph.startswith("effects_")

    async def turn(self, graph: str, thread: str, content: str, steps: int) -> None:
        """See the base class."""
        ran = await self.client.execute_workflow("Turn", steps, id=thread, task_queue=self._queue)
        if ran != steps:
            raise Refused(f"{steps} steps were to be counted, not {ran}")

    async def tokens(self, graph: str, thread: str) -> list[tuple[float, float]]:
        """See the base class: it has none."""
        raise Refused("no graph")

    async def have(self, thread: str, messages: int, size: int) -> int:
        """See the base class: it has no state."""
        raise Refused("no state")

    async def history_bytes(self, thread: str) -> int | None:
        """See the base class."""
        history = await self.client.get_workflow_handle(thread).fetch_history()
        return sum(event.ByteSize() for event in history.events)
