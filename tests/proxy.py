"""A TCP proxy between our processes and a server, which cuts, refuses or swallows what passes through it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.servers import free_port


@dataclass
class Proxy:
    """Listens on a port of 127.0.0.1 and passes on to a Unix socket or another port.

    Attributes:
        port: where it listens.
        target: a path, or a port of 127.0.0.1.
        accepted: how many connections it has taken so far.
    """

    port: int
    target: Path | int
    accepted: int = 0
    _server: asyncio.Server | None = None
    _writers: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])
    _serving: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _flows: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def connections(self) -> int:
        """How many connections pass through it now."""
        return len(self._serving)

    def cut(self) -> None:
        """Resets all connections; new ones are taken."""
        for writer in self._writers:
            writer.transport.abort()

    async def refuse(self) -> None:
        """Resets all connections and takes no new ones, as a server that is down."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut()

    def freeze(self) -> None:
        """Passes nothing on any more and says nothing about it: connections stay, and new ones are taken."""
        self._flows.clear()

    async def heal(self) -> None:
        """Takes connections and passes everything on, what it held back first."""
        self._flows.set()
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, backlog=200)

    async def close(self) -> None:
        """Ends everything."""
        await self.refuse()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self._writers.add(writer)
        try:
            await self._flows.wait()
            there, back = await self._connect()
            self._writers.add(back)
            try:
                await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
            finally:
                self._writers.discard(back)
                back.transport.abort()
        except OSError:
            pass
        finally:
            self._serving.discard(task)
            self._writers.discard(writer)
            writer.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self.target, Path):
            return await asyncio.open_unix_connection(str(self.target))
        return await asyncio.open_connection("127.0.0.1", self.target)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            await self._flows.wait()
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError("one side closed")


@contextlib.asynccontextmanager
async def proxy(target: Path | int) -> AsyncGenerator[Proxy]:
    """Yields an open proxy on a free port."""
    it = Proxy(free_port(), target)
    await it.heal()
    try:
        yield it
    finally:
        await it.close()


@contextlib.asynccontextmanager
async def to_postgres(database_url: str) -> AsyncGenerator[tuple[Proxy, str]]:
    """Yields a proxy to the server of `database_url`, and the URL that goes through it."""
    parts = conninfo_to_dict(database_url)
    socket = Path(str(parts["host"])) / f".s.PGSQL.{parts.get('port') or 5432}"
    async with proxy(socket) as it:
        yield it, make_conninfo(database_url, host="127.0.0.1", port=it.port)
