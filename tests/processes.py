"""Real worker and API processes and a real payment provider, for tests that kill, freeze and cut them off."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
from temporalio.client import Client

from adapter.graphs import load_project
from adapter.settings import Settings
from adapter.store.pool import create_pool
from deploy.examples.booking.provider_process import ProviderProcess, start
from tests.stack import Stack

ROOT = Path(__file__).resolve().parent.parent


class Process(subprocess.Popen[bytes]):
    """One `turns` process whose output goes to a log of its own."""

    def __init__(self, log: Path, environment: Mapping[str, str], *arguments: str) -> None:
        self.log = log
        with log.open("ab") as output:
            super().__init__(
                [sys.executable, "-m", "deploy.cli", *arguments],
                cwd=ROOT,
                env={**os.environ, **environment},
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
            )

    def freeze(self) -> None:
        """Stops it where it is, as a virtual machine that is paused."""
        self.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Lets a stopped process go on."""
        self.send_signal(signal.SIGCONT)

    @property
    def text(self) -> str:
        """What it has logged."""
        return self.log.read_text(errors="replace")

    async def says(self, pattern: str, *, after: int = 0, seconds: float = 60) -> re.Match[str]:
        """Waits until its log, from a position on, has what the pattern describes."""
        async with asyncio.timeout(seconds):
            while (found := re.compile(pattern).search(self.text, after)) is None:
                assert self.poll() is None, f"it ended with {self.returncode} before it said {pattern!r}"
                await asyncio.sleep(0.02)
        return found

    async def ready(self) -> None:
        """Waits until it takes work."""
        await self.says("worker ready|API ready")

    async def frozen(self) -> None:
        """Waits until it is stopped."""
        async with asyncio.timeout(10):
            while psutil.Process(self.pid).status() != psutil.STATUS_STOPPED:
                await asyncio.sleep(0.01)

    async def ended(self, seconds: float = 60) -> int:
        """Waits for its end; returns its exit code."""
        async with asyncio.timeout(seconds):
            while (code := self.poll()) is None:
                await asyncio.sleep(0.01)
        return code


@dataclass
class Workers:
    """Starts `turns worker` processes, and `turns api` ones; `stop` kills what is left."""

    environment: dict[str, str]
    folder: Path
    running: list[Process] = field(default_factory=list[Process])

    def start(self, **environment: str) -> Process:
        """Starts a worker."""
        return self._start("worker", environment)

    def start_api(self, port: int, **environment: str) -> Process:
        """Starts an API process."""
        return self._start("api", environment, "--port", str(port))

    def _start(self, what: str, environment: Mapping[str, str], *options: str) -> Process:
        log = self.folder / f"{what}-{len(self.running) + 1}.log"
        process = Process(log, {**self.environment, **environment}, what, *options)
        self.running.append(process)
        return process

    def stop(self) -> None:
        for process in self.running:
            with contextlib.suppress(ProcessLookupError):
                process.thaw()
                process.kill()
            process.wait(10)

    def tell(self) -> None:
        """Writes all logs to stderr, which pytest shows when a test fails."""
        for process in self.running:
            sys.stderr.write(f"--- {process.log.name}, pid {process.pid}\n{process.text}")


@dataclass(frozen=True)
class Faults:
    """The fault points of all processes that were told of this directory; see `adapter/faultpoints.py`."""

    directory: Path

    def arm(self, point: str, action: str = "kill", hit: int = 1) -> None:
        """Arms a point; what was noted about it before is forgotten."""
        self.clear(point)
        draft = self.directory / f"{point}.draft"
        draft.write_text(f"{action} {hit}")
        draft.rename(self.directory / point)

    def clear(self, point: str) -> None:
        """Disarms a point and forgets its hits."""
        for path in (self.directory / point, *self.directory.glob(f"{point}.*")):
            path.unlink(missing_ok=True)

    def hits(self, point: str) -> int:
        """Returns how often the point was reached since it was armed."""
        return len(list(self.directory.glob(f"{point}.hit-*")))

    async def taken(self, point: str, seconds: float = 60) -> int:
        """Waits until a process acts on the point; returns its process id."""
        note = self.directory / f"{point}.taken"
        async with asyncio.timeout(seconds):
            while not note.exists():
                await asyncio.sleep(0.01)
        return int(note.read_text())


@dataclass
class Faulty:
    """A stack whose workers are processes of their own, and the provider that its booking graph charges."""

    stack: Stack
    workers: Workers
    provider: ProviderProcess
    faults: Faults

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
    faults = Faults(folder / "faults")
    faults.directory.mkdir()
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
            "TURNS_FAULTS": str(faults.directory),
            **(env or {}),
        },
        folder,
    )
    client = await Client.connect(address)
    async with create_pool(database_url, size=10, name="test") as pool:
        try:
            yield Faulty(Stack(settings, load_project(config), client, pool), workers, provider, faults)
        finally:
            workers.stop()
            provider.process.kill()
            provider.process.wait(10)
            workers.tell()


def read_ledger(path: Path) -> list[dict[str, Any]]:
    """Returns a ledger file's lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]
