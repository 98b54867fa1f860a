"""Owns what all contenders have in common: processes with logs, and the shape of a turn."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tests.bench.environments import SERVED
from tests.bench.wire import Http, Refused
from tests.servers import Postgres, free_port

START_SECONDS = 60.0
_STEPS = re.compile(rb'"steps":\s?(\d+)')


@dataclass(frozen=True)
class Servers:
    """What all contenders run on in one run of the bench.

    Attributes:
        postgres: each has a database of its own on it.
        postgres_pid: its first process.
        temporal: its address.
        temporal_pid: its process.
        folder: for logs.
    """

    postgres: Postgres
    postgres_pid: int
    temporal: str
    temporal_pid: int
    folder: Path

    @property
    def pids(self) -> tuple[int, int]:
        """Both servers' first processes."""
        return (self.postgres_pid, self.temporal_pid)

    def empty_database(self) -> str:
        """Returns the URL of a new database without tables."""
        name = f"bench_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.postgres.uri, autocommit=True) as conn:
            conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.postgres.uri.replace("/postgres?", f"/{name}?")


@dataclass(frozen=True)
class Setup:
    """How a scenario wants contenders started.

    Attributes:
        workers: processes that run graphs.
        write: whether the plugin's nodes write tokens to a stream, which is all that its worker then does.
        lost_after: seconds after which a lost worker is noticed, where that can be set.
    """

    workers: int = 1
    write: bool = False
    lost_after: float | None = None


class Contender(ABC):
    """One way to run turns.

    Attributes:
        name: as in the tables.
        python: the interpreter of its environment.
        packages: whose versions are told.
        one_history: whether all turns of a thread are in one history, instead of one each.
    """

    name: str
    packages: Sequence[str]
    one_history = False

    def __init__(self, servers: Servers, python: Path) -> None:
        self.servers = servers
        self.python = python
        self.started: dict[str, list[subprocess.Popen[bytes]]] = {}

    @abstractmethod
    async def start(self, setup: Setup) -> None:
        """Starts its processes and waits until they take work."""

    def has(self, graph: str) -> bool:
        """Whether it can run turns of a graph."""
        return True

    @abstractmethod
    async def turn(self, graph: str, thread: str, content: str, steps: int) -> None:
        """Runs a turn to its end; its thread then counts so many steps.

        Raises:
            Refused: it failed, or did not run all nodes.
        """

    @abstractmethod
    async def tokens(self, graph: str, thread: str) -> list[tuple[float, float]]:
        """Runs a turn; returns when each of its tokens was said and when it was here."""

    @abstractmethod
    async def have(self, thread: str, messages: int, size: int) -> int:
        """Has a thread with so many messages of a size; returns how many steps it counts."""

    async def history_bytes(self, thread: str) -> int | None:
        """Returns the size of the events in the thread's latest history in Temporal, if it has any."""
        return None

    def replace(self) -> None:
        """Starts a worker for one that was killed, unless something else does."""
        return

    async def close(self) -> None:
        """Ends connections."""
        return

    def pids(self, role: str | None = None) -> list[int]:
        """Returns its processes, or those of a role."""
        return [p.pid for name, those in self.started.items() if role in (None, name) for p in those]

    def run(self, role: str, command: Sequence[str], environment: Mapping[str, str]) -> Path:
        """Starts a process; returns its log."""
        those = self.started.setdefault(role, [])
        log = self.servers.folder / f"{self.name}-{role}-{uuid.uuid4().hex[:6]}.log".replace(" ", "-")
        with log.open("ab") as output:
            made = subprocess.Popen(
                [str(self.python), *command],
                cwd=SERVED,
                env={**os.environ, "LANGSMITH_TRACING": "false", **environment},
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
            )
        those.append(made)
        return log

    async def said(self, log: Path, what: str) -> None:
        """Waits until a log has a text.

        Raises:
            Refused: it does not have it in a minute.
        """
        deadline = time.monotonic() + START_SECONDS
        while what not in (text := log.read_text(errors="replace")):
            if time.monotonic() > deadline or self._ended():
                raise Refused(f"did not start: {(text.splitlines() or ['no output'])[-1][:200]}")
            await asyncio.sleep(0.05)

    def _ended(self) -> bool:
        return any(process.poll() is not None for those in self.started.values() for process in those)

    async def stop(self) -> None:
        """Ends its processes."""
        await self.close()
        ending = [process for those in self.started.values() for process in those]
        for process in ending:
            process.terminate()
        for process in ending:
            try:
                await asyncio.to_thread(process.wait, 15)
            except subprocess.TimeoutExpired:
                process.kill()
                await asyncio.to_thread(process.wait, 10)
        self.started.clear()


def request(graph: str, content: str, **more: Any) -> dict[str, Any]:
    """Returns the body of a run's request, with one message."""
    return {"assistant_id": graph, "input": {"messages": [user(content)]}, "if_not_exists": "create", **more}


def user(content: str) -> dict[str, str]:
    """Returns a message as JSON."""
    return {"role": "user", "content": content}


class HttpContender(Contender):
    """One that is asked for turns over the Agent Server's HTTP routes, or routes like them."""

    def __init__(self, servers: Servers, python: Path) -> None:
        super().__init__(servers, python)
        self.port = free_port()
        self.http = Http(f"http://127.0.0.1:{self.port}")

    async def answers(self, path: str, log: Path) -> None:
        """Waits until a GET of that path is answered with success.

        Raises:
            Refused: its process ends before, or it is not in a minute.
        """
        deadline = time.monotonic() + START_SECONDS
        status = 0
        while status != 200:
            with contextlib.suppress(OSError, Refused):
                status = await self.http.ask("GET", path, None, lambda _: None)
            if time.monotonic() > deadline or self._ended():
                lines = log.read_text(errors="replace").splitlines() or ["no output"]
                raise Refused(f"did not start (GET {path}: {status or 'no answer'}): {lines[-1][:200]}")
            await asyncio.sleep(0.05)

    async def turn(self, graph: str, thread: str, content: str, steps: int) -> None:
        """See the base class."""
        check_steps(await self.http.post(f"/threads/{thread}/runs/wait", request(graph, content)), steps)

    async def tokens(self, graph: str, thread: str) -> list[tuple[float, float]]:
        """See the base class."""
        body = request(graph, "talk", stream_mode=["messages-tuple"])
        return await self.http.tokens(f"/threads/{thread}/runs/stream", body)

    async def have(self, thread: str, messages: int, size: int) -> int:
        """See the base class: all of them come with one turn."""
        body = request("effects_1", "")
        body["input"]["messages"] = [user("x" * size) for _ in range(messages)]
        check_steps(await self.http.post(f"/threads/{thread}/runs/wait", body), 1)
        return 1

    async def close(self) -> None:
        """See the base class."""
        self.http.close()


def check_steps(body: bytes, steps: int) -> None:
    """Looks whether a state counts so many steps.

    Raises:
        Refused: it does not.
    """
    found = _STEPS.search(body)
    if found is None or int(found[1]) != steps:
        counted = found[1].decode() if found else body[:200].decode(errors="replace")
        raise Refused(f"{steps} steps were to be counted, not {counted}")
