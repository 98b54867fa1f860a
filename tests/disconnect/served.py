"""Owns the processes under test: ours and the handlers', each with a payment provider of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

from deploy.examples.booking.provider_process import ProviderProcess, start
from tests.disconnect.handlers import SHAPE
from tests.processes import ROOT, Workers
from tests.servers import free_port

WEB_PROCESSES = 4
WORKERS = 2
HEARTBEAT_TIMEOUT = 2
CHARGE_SECONDS = 0.5
START_SECONDS = 90


@dataclass(frozen=True)
class Served:
    """A server and what it runs on.

    Attributes:
        url: of the server, one port for all its processes.
        database_url: its database.
        provider: what its graph charges.
        web: the processes that answer requests.
        graph: the processes that run the graph.
        replace: starts what does not come back by itself once it was killed.
    """

    url: str
    database_url: str
    provider: ProviderProcess
    web: Callable[[], Sequence[int]]
    graph: Callable[[], Sequence[int]]
    replace: Callable[[], object]

    def ledger(self) -> dict[str, list[dict[str, Any]]]:
        """Returns the provider's attempts and effects."""
        return httpx.get(f"{self.provider.url}/ledger", trust_env=False).json()

    def charges(self, what: str, booking: str) -> list[dict[str, Any]]:
        """Returns the "attempts" or "effects" of charging a booking."""
        entries = self.ledger()[what]
        return [e for e in entries if e["kind"] == "charge" and e["parameters"]["booking_id"] == booking]

    def provider_port(self) -> int:
        """Returns the port that a process in the middle of a charge is connected to."""
        return int(self.provider.url.rpartition(":")[2])

    async def settled(self) -> None:
        """Waits until nothing has reached the provider for three times as long as it takes to act."""
        quiet, before = 0.0, -1
        while quiet < 3 * CHARGE_SECONDS:
            now = sum(map(len, self.ledger().values()))
            quiet, before = (quiet + 0.1 if now == before else 0.0), now
            await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def ours(database_url: str, address: str, folder: Path) -> AsyncGenerator[Served]:
    """Serves the booking graph with this project: `turns api` and `turns worker` processes."""
    with _provider(folder) as provider:
        environment = {
            "DATABASE_URL": database_url,
            "TEMPORAL_ADDRESS": address,
            "TURNS_TASK_QUEUE": f"turns-{uuid.uuid4().hex[:8]}",
            "TURNS_HEARTBEAT_TIMEOUT": str(HEARTBEAT_TIMEOUT),
            "TURNS_CONFIG": str(ROOT / "langgraph.json"),
            "TURNS_DATA_DIR": str(folder),
            "BOOKING_PROVIDER_URL": provider.url,
        }
        port, log = free_port(), folder / "api.log"
        command = ("-m", "deploy.cli", "api", "--port", str(port), "--api-workers", str(WEB_PROCESSES))
        workers = Workers(environment, folder)
        try:
            first = [workers.start() for _ in range(WORKERS)]
            with _running(command, environment, log) as api:
                await _said(log, "API ready", WEB_PROCESSES)
                for worker in first:
                    await worker.ready()
                yield Served(
                    f"http://127.0.0.1:{port}",
                    database_url,
                    provider,
                    web=lambda: _children(api),
                    graph=lambda: [worker.pid for worker in workers.running if worker.poll() is None],
                    replace=workers.start,
                )
        finally:
            workers.stop()


@contextlib.asynccontextmanager
async def by_hand(shape: str, database_url: str, folder: Path) -> AsyncGenerator[Served]:
    """Serves the booking graph with one of the handlers; its database has LangGraph's tables."""
    with _provider(folder) as provider:
        environment = {
            "DATABASE_URL": database_url,
            "BOOKING_PROVIDER_URL": provider.url,
            "PYTHONPATH": str(ROOT / "deploy" / "examples"),
            SHAPE: shape,
        }
        port, log = free_port(), folder / "uvicorn.log"
        command = (
            "-m", "uvicorn", "--factory", "tests.disconnect.handlers:create_app", "--port", str(port),
            "--workers", str(WEB_PROCESSES), "--timeout-graceful-shutdown", "2",
        )  # fmt: skip
        with _running(command, environment, log) as web:
            await _said(log, "Application startup complete", WEB_PROCESSES)
            yield Served(
                f"http://127.0.0.1:{port}",
                database_url,
                provider,
                web=lambda: _children(web),
                graph=lambda: _children(web),
                replace=lambda: None,  # uvicorn does
            )


def kill_connected_to(port: int, among: Sequence[int]) -> None:
    """Kills the one process of `among` that has an open connection to that port."""
    found = [pid for pid in among if _is_connected(pid, port)]
    assert len(found) == 1, f"{len(found)} of the processes {among} are connected to port {port}"
    os.kill(found[0], signal.SIGKILL)


def _is_connected(pid: int, port: int) -> bool:
    try:
        return any(
            one.raddr and one.raddr.port == port and one.status == psutil.CONN_ESTABLISHED
            for one in psutil.Process(pid).net_connections("tcp")
        )
    except psutil.NoSuchProcess:
        return False


def _children(process: subprocess.Popen[bytes]) -> list[int]:
    return [child.pid for child in psutil.Process(process.pid).children()]


@contextlib.contextmanager
def _provider(folder: Path) -> Generator[ProviderProcess]:
    folder.mkdir(parents=True, exist_ok=True)
    provider = start(folder / "ledger.jsonl", "--delay-before", str(CHARGE_SECONDS))
    try:
        yield provider
    finally:
        provider.process.kill()
        provider.process.wait(10)


@contextlib.contextmanager
def _running(
    command: Sequence[str], environment: Mapping[str, str], log: Path
) -> Generator[subprocess.Popen[bytes]]:
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
        )
    try:
        yield process
    except BaseException:
        sys.stderr.write(log.read_text())
        raise
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


async def _said(log: Path, what: str, times: int) -> None:
    """Waits until a log has a line so many times."""
    deadline = time.monotonic() + START_SECONDS
    while log.read_text().count(what) < times:
        assert time.monotonic() < deadline, f"{log.name} says {what!r} too seldom:\n{log.read_text()}"
        await asyncio.sleep(0.1)
