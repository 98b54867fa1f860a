"""What the nodes of `project/` tell a test, and how it lets them go on."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapter.store import requests
from tests.processes import ROOT, Faulty, Process, faulty

PROJECT = ROOT / "tests" / "field" / "project" / "langgraph.json"


@dataclass
class Field:
    """Worker processes of the project, none started yet, and its nodes' files."""

    it: Faulty
    folder: Path
    thread: str

    @property
    def told(self) -> list[tuple[str, int]]:
        """What nodes told so far, each with its process."""
        file = self.folder / "told"
        lines = file.read_text().splitlines() if file.exists() else []
        return [(what, int(pid)) for what, _, pid in (line.rpartition(" ") for line in lines)]

    async def hears(self, what: str, times: int = 1) -> None:
        """Waits until nodes have told it so often."""
        async with asyncio.timeout(60):
            while [told for told, _ in self.told].count(what) < times:
                await asyncio.sleep(0.01)

    async def two_workers(self) -> None:
        """Starts two workers."""
        for worker in (self.it.workers.start(), self.it.workers.start()):
            await worker.ready()

    async def who_begun(self) -> tuple[Process, Process]:
        """Waits until a node runs; returns the worker it runs on, and the other one."""
        await self.hears("begun")
        (_, pid), *_ = self.told
        one, two = self.it.workers.running
        return (one, two) if one.pid == pid else (two, one)

    async def charged(self) -> None:
        """Waits until the provider has charged; its answer may be on its way still."""
        async with asyncio.timeout(60):
            while not self.it.count("effects", "charge"):
                await asyncio.sleep(0.02)

    async def effects(self) -> list[dict[str, Any]]:
        """Returns the thread's journal."""
        return list(await requests.list_effects(self.it.stack.pool, self.thread))

    def lets_go(self) -> None:
        """Lets the nodes go on."""
        (self.folder / "go").touch()

    async def trail(self, graph: str) -> list[str]:
        """Returns what the thread's nodes noted in its state."""
        return list((await self.it.stack.state(graph, self.thread)).values["trail"])


@contextlib.asynccontextmanager
async def field(
    database_url: str,
    address: str,
    folder: Path,
    *provider_options: str,
    heartbeat_timeout: float = 2.0,
    **environment: str,
) -> AsyncGenerator[Field]:
    """Yields the project's workers and files.

    Args:
        database_url: PostgreSQL.
        address: Temporal.
        folder: an empty one.
        *provider_options: of the payment provider.
        heartbeat_timeout: seconds; one that no test lives to see shows that something does not wait for it.
        **environment: of the workers.
    """
    env = {"FIELD_FOLDER": str(folder), **environment}
    async with faulty(database_url, address, folder, *provider_options, config=PROJECT, env=env) as it:
        it.stack.settings = it.stack.settings.model_copy(update={"heartbeat_timeout": heartbeat_timeout})
        yield Field(it, folder, str(uuid.uuid4()))
