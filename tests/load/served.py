"""Owns the processes under load: one worker, and one API or more in front of it."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.processes import Process, Workers
from tests.servers import free_port

PROJECT = Path(__file__).parent / "project" / "langgraph.json"
CONCURRENT_EFFECTS = 400
POOL_SIZE = 10  # of each process, as it is by default


@dataclass
class Api:
    """An API process, and another one in its place once it was killed."""

    workers: Workers
    process: Process
    port: int

    @classmethod
    def start(cls, workers: Workers) -> Api:
        """Starts one; it does not answer yet."""
        port = free_port()
        return cls(workers, workers.start_api(port), port)

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    async def replace(self) -> None:
        """Kills the process and waits for another one on the same port."""
        self.process.kill()
        assert await self.process.ended() == -9
        self.process = self.workers.start_api(self.port)
        await self.process.ready()


@dataclass
class Served:
    """What is under load.

    Attributes:
        database_url: its database.
        folder: for files that its nodes look at.
        apis: the API processes.
        worker: the one that runs the graphs.
    """

    database_url: str
    folder: Path
    worker: Process
    apis: list[Api] = field(default_factory=list[Api])


@contextlib.asynccontextmanager
async def served(database_url: str, address: str, folder: Path, *, apis: int) -> AsyncGenerator[Served]:
    """Yields processes that answer."""
    workers = Workers(
        {
            "DATABASE_URL": database_url,
            "TEMPORAL_ADDRESS": address,
            "TURNS_TASK_QUEUE": f"turns-{uuid.uuid4().hex[:8]}",
            "TURNS_CONCURRENT_EFFECTS": str(CONCURRENT_EFFECTS),
            "TURNS_POOL_SIZE": str(POOL_SIZE),
            "TURNS_CONFIG": str(PROJECT),
            "TURNS_DATA_DIR": str(folder),
        },
        folder,
    )
    try:
        it = Served(database_url, folder, workers.start(), [Api.start(workers) for _ in range(apis)])
        await asyncio.gather(*(process.ready() for process in workers.running))
        yield it
    except BaseException:
        workers.tell()
        raise
    finally:
        workers.stop()


def client_of(api: Api) -> httpx.AsyncClient:
    """Returns a client with as many connections as it takes, which it keeps."""
    return httpx.AsyncClient(
        base_url=api.url,
        timeout=httpx.Timeout(60),
        limits=httpx.Limits(max_connections=None, keepalive_expiry=None),
        trust_env=False,
    )
