"""The embedded PostgreSQL starts whatever its last life left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from adapter.errors import SchemaMismatch
from adapter.store import schema
from deploy.child import Child
from deploy.postgres import EmbeddedPostgres, running_url

pytestmark = pytest.mark.slow

WITHIN = 30.0


@pytest.fixture
def postgres(tmp_path: Path) -> EmbeddedPostgres:
    made = EmbeddedPostgres(tmp_path, connections=30)
    made.initialise()
    return made


async def started(postgres: EmbeddedPostgres) -> Child:
    child = Child(postgres.command(), postgres)
    try:
        await child.start(WITHIN)
    except BaseException:
        await child.stop()
        raise
    return child


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(WITHIN):
        while not await condition():
            await asyncio.sleep(0.05)


async def _not_running(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # reaped between the two looks
        return True


def server_of(postgres: EmbeddedPostgres) -> psutil.Process:
    pid = (postgres.cluster / "postmaster.pid").read_text().split("\n")[0]
    return psutil.Process(int(pid))


async def rows(url: str) -> list[int]:
    async with await psycopg.AsyncConnection[tuple[int]].connect(url) as conn:
        await conn.execute("CREATE TABLE IF NOT EXISTS kept (n int)")
        cursor = await conn.execute("SELECT n FROM kept ORDER BY n")
        found = [n for (n,) in await cursor.fetchall()]
        await conn.execute("INSERT INTO kept VALUES (%s)", (len(found),))
        return found


async def test_data_stays_and_nothing_listens_on_tcp(postgres: EmbeddedPostgres, tmp_path: Path) -> None:
    for life in range(2):
        child = await started(postgres)
        assert await rows(postgres.url) == list(range(life))
        assert running_url(tmp_path) == postgres.url
        assert not [c for c in server_of(postgres).net_connections("inet") if c.status == psutil.CONN_LISTEN]
        await child.stop()
        assert running_url(tmp_path) is None


async def test_a_killed_server_is_started_again(postgres: EmbeddedPostgres) -> None:
    child = await started(postgres)
    await rows(postgres.url)
    killed = server_of(postgres)
    killed.kill()
    await until(lambda: _not_running(killed))
    await until(postgres.answers)
    assert await rows(postgres.url) == [0]
    await child.stop()


@pytest.fixture
def stranger() -> Iterator[int]:
    """A living process that is no PostgreSQL and has got the old server's pid."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process.pid
    process.kill()
    process.wait()


@pytest.fixture
def zombie() -> Iterator[int]:
    """The server's own pid in a container whose init reaps nobody."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    yield process.pid
    process.wait()


@pytest.mark.parametrize("left", ["stranger", "zombie", "gone", "empty", "torn"])
async def test_a_stale_lock_file(
    postgres: EmbeddedPostgres, left: str, request: pytest.FixtureRequest
) -> None:
    lock = postgres.cluster / "postmaster.pid"
    child = await started(postgres)
    await rows(postgres.url)
    text = lock.read_text()
    child.kill()
    await child.stop()
    _, _, rest = text.partition("\n")
    match left:
        case "stranger" | "zombie":
            lock.write_text(f"{request.getfixturevalue(left)}\n{rest}")
        case "gone":
            lock.write_text(text)
        case "empty":
            lock.write_text("")
        case _:
            lock.write_text(text[:3] + "\n" + str(postgres.cluster))
    lock.chmod(0o600)
    if postgres.command().user is not None:
        os.chown(lock, postgres.cluster.stat().st_uid, -1)

    child = await started(postgres)
    assert await rows(postgres.url) == [0]
    await child.stop()


async def test_a_server_without_a_supervisor_makes_way(postgres: EmbeddedPostgres) -> None:
    await postgres.prepare()
    command = postgres.command()
    orphan = await asyncio.create_subprocess_exec(
        *command.argv, user=command.user, stderr=asyncio.subprocess.DEVNULL
    )
    await until(postgres.answers)
    await rows(postgres.url)

    child = await started(postgres)
    assert await orphan.wait() == 0, "it was stopped in order"
    assert await rows(postgres.url) == [0]
    await child.stop()


@pytest.mark.parametrize("name", ["with a space & 'more' %20", "x" * 120])
async def test_odd_directories(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    postgres = EmbeddedPostgres(tmp_path / name, connections=30)
    postgres.initialise()
    child = await started(postgres)
    assert await rows(postgres.url) == []
    await child.stop()


async def test_an_unfinished_initdb_is_started_over(tmp_path: Path) -> None:
    (tmp_path / "postgres.unfinished").mkdir()
    (tmp_path / "postgres.unfinished" / "PG_VERSION").write_text("18\n")
    postgres = EmbeddedPostgres(tmp_path, connections=30)
    postgres.initialise()
    child = await started(postgres)
    assert await rows(postgres.url) == []
    await child.stop()


async def test_a_schema_ahead_is_refused_in_one_line(postgres: EmbeddedPostgres, tmp_path: Path) -> None:
    child = await started(postgres)
    await schema.migrate(postgres.url)
    async with await psycopg.AsyncConnection[tuple[int]].connect(postgres.url) as conn:
        await conn.execute("INSERT INTO turns.migration (version, name) VALUES (9999, 'later')")
    with pytest.raises(SchemaMismatch):
        await schema.check(postgres.url)

    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "deploy.cli", "migrate", "--data-dir", str(tmp_path)),
        stderr=asyncio.subprocess.PIPE,
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "DATABASE_URL"},
    )
    _, stderr = await process.communicate()
    assert process.returncode == 2
    assert stderr.decode().startswith("turns: the database has schema 9999, this version knows only up to ")
    assert stderr.count(b"\n") == 1
    await child.stop()


async def test_a_second_signal_ends_it_without_a_checkpoint(postgres: EmbeddedPostgres) -> None:
    child = await started(postgres)
    await rows(postgres.url)
    server = server_of(postgres)
    server.send_signal(signal.SIGSTOP)  # hangs: nothing that asks is answered
    stopping = asyncio.create_task(child.stop())
    await asyncio.sleep(0.1)
    assert not stopping.done()
    child.kill()
    server.send_signal(signal.SIGCONT)
    await stopping
    child = await started(postgres)
    assert await rows(postgres.url) == [0]
    await child.stop()
