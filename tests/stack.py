"""A worker in the test's process on the session's servers, and short ways to run turns on it."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from temporalio.client import Client, WorkflowHistory

from activities.worker import defaults_of, run
from adapter.graphs import Project
from adapter.settings import Settings
from adapter.store import requests
from adapter.store.pool import Pool, create_pool, fetch_all, fetch_one
from adapter.store.requests import NewTurn
from adapter.store.turns import FINAL
from adapter.turn_request import starts_over
from workflows import names
from workflows.contracts import First, Queued, Submit
from workflows.start import submit


@dataclass
class Stack:
    """What a test needs to run turns and to look at what they left."""

    settings: Settings
    project: Project
    client: Client
    pool: Pool

    async def submit(
        self,
        graph: str = "graph",
        /,
        *,
        thread: str,
        key: str | None = None,
        cut_in: bool = False,
        roll_back: bool = False,
        apart: bool = False,
        **request: Any,
    ) -> str:
        """Records a turn and submits it; returns its id.

        It begins in its first effect's activity, if its graph says what that is, unless it shall begin `apart`.
        """
        await requests.create_thread(self.pool, thread, {}, if_exists="do_nothing")
        recorded = await requests.record_turn(
            self.pool,
            NewTurn(
                thread_id=thread,
                graph_id=graph,
                assistant_id=str(uuid.uuid5(uuid.NAMESPACE_DNS, graph)),
                request=request,
                metadata={},
                config={},
                strategy="enqueue",
                idempotency_key=key,
                refuse_busy=False,
            ),
        )
        turn_id = str(recorded.row["turn_id"])
        first = None if apart or not starts_over(request) else self.project.first_effect(graph)
        queued = Queued(
            turn_id, recorded.row["seq"], first=None if first is None else First(first.node, first.options)
        )
        await submit(
            self.client,
            thread,
            Submit(queued, cut_in, roll_back),
            task_queue=self.settings.task_queue,
            defaults=defaults_of(self.settings),
        )
        return turn_id

    async def ended(self, turn_id: str, seconds: float = 60) -> dict[str, Any]:
        """Waits for a turn's final status; returns its row."""
        async with asyncio.timeout(seconds):
            while True:
                row = await fetch_one(self.pool, "get_turn", turn_id=turn_id)
                assert row is not None
                if row["status"] in FINAL:
                    return row
                await asyncio.sleep(0.02)

    async def turn(self, graph: str = "graph", /, *, thread: str, **request: Any) -> dict[str, Any]:
        """Runs one turn to its end; returns its row."""
        return await self.ended(await self.submit(graph, thread=thread, **request))

    async def events(self, turn_id: str) -> list[tuple[str, Any]]:
        """Returns a turn's event log: (wire name, decoded data)."""
        rows = await fetch_all(self.pool, "read_events", turn_id=turn_id, after=0, limit=100_000)
        assert [r["offset"] for r in rows] == list(range(1, len(rows) + 1))
        return [(r["event"], orjson.loads(r["data"])) for r in rows]

    async def state(self, graph: str, thread: str) -> Any:
        """Returns LangGraph's own snapshot of the thread's state."""
        async with self.project.plain(graph) as plain:
            reading = plain.copy({"checkpointer": AsyncPostgresSaver(self.pool)})  # type: ignore[arg-type]
            return await reading.aget_state({"configurable": {"thread_id": thread}}, subgraphs=True)

    async def history(self, thread: str) -> WorkflowHistory:
        """Returns the history of the thread's latest run."""
        return await self.client.get_workflow_handle(names.workflow_id(thread)).fetch_history()

    async def activities(self, thread: str) -> list[str]:
        """Returns the types of the activities of the thread's latest run, in order of scheduling."""
        history = await self.history(thread)
        return [
            e.activity_task_scheduled_event_attributes.activity_type.name
            for e in history.events
            if e.HasField("activity_task_scheduled_event_attributes")
        ]


@contextlib.asynccontextmanager
async def stack(
    database_url: str,
    address: str,
    graphs: Mapping[str, Any],
    *,
    client: Client | None = None,
    **settings: Any,
) -> AsyncGenerator[Stack]:
    """Runs a worker for `graphs` until the block ends."""
    defaults: dict[str, Any] = {"heartbeat_timeout": 10.0, "shutdown_grace": 2.0}
    given = Settings(
        database_url=database_url, task_queue=f"turns-{uuid.uuid4().hex[:8]}", **{**defaults, **settings}
    )
    project = Project(Path("langgraph.json"), {}, dict(graphs))
    client = client or await Client.connect(address)
    stop = asyncio.Event()
    async with create_pool(database_url, size=10, name="test") as pool:
        worker = asyncio.create_task(run(given, project, stop, client=client))
        try:
            yield Stack(given, project, client, pool)
        finally:
            stop.set()
            await worker
