"""Real worker processes and a real payment provider, for tests that kill them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from temporalio.client import Client

from adapter.graphs import load_project
from adapter.settings import Settings
from adapter.store.pool import create_pool
from deploy.examples.booking.provider_process import ProviderProcess, start
from tests.stack import Stack

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Workers:
    """Starts and kills `turns worker` processes."""

    environment: dict[str, str]
    log: Path
    running: list[subprocess.Popen[bytes]] = field(default_factory=list[subprocess.Popen[bytes]])

    def start(self, **environment: str) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "deploy.cli", "worker"],
                cwd=ROOT,
                env={**os.environ, **self.environment, **environment},
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        self.running.append(process)
        return process

    def stop(self) -> None:
        for process in self.running:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait(10)


@dataclass
class Faulty:
    """A stack whose workers are processes of their own, and the provider that its booking graph charges."""

    stack: Stack
    workers: Workers
    provider: ProviderProcess

    def ledger(self) -> dict[str, list[dict[str, Any]]]:
        """Returns the provider's attempts and effects."""
        return httpx.get(f"{self.provider.url}/ledger", trust_env=False).json()

    def count(self, what: str, kind: str) -> int:
        """Counts a kind of attempts or effects, such as `count("effects", "charge")`."""
        return sum(entry["kind"] == kind for entry in self.ledger()[what])


@contextlib.asynccontextmanager
async def faulty(
    database_url: str,
    address: str,
    folder: Path,
    *provider_options: str,
    config: Path = ROOT / "langgraph.json",
    env: Mapping[str, str] | None = None,
) -> AsyncGenerator[Faulty]:
    """Yields a stack without any worker yet; tests start and kill them."""
    provider = start(folder / "ledger.jsonl", *provider_options)
    settings = Settings(
        database_url=database_url, task_queue=f"turns-{uuid.uuid4().hex[:8]}", heartbeat_timeout=2.0
    )
    workers = Workers(
        {
            "DATABASE_URL": database_url,
            "TEMPORAL_ADDRESS": address,
            "TURNS_TASK_QUEUE": settings.task_queue,
            "TURNS_HEARTBEAT_TIMEOUT": "2",
            "TURNS_CONFIG": str(config),
            "TURNS_DATA_DIR": str(folder),
            "BOOKING_PROVIDER_URL": provider.url,
            **(env or {}),
        },
        folder / "workers.log",
    )
    client = await Client.connect(address)
    async with create_pool(database_url, size=10, name="test") as pool:
        try:
            yield Faulty(Stack(settings, load_project(config), client, pool), workers, provider)
        finally:
            workers.stop()
            provider.process.kill()
            provider.process.wait(10)
            sys.stderr.write(workers.log.read_text() if workers.log.exists() else "")


def read_ledger(path: Path) -> list[dict[str, Any]]:
    """Returns a ledger file's lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]
