"""Gates at which nodes wait until a Node script opens them, and the port on which it does."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncGenerator
from urllib.parse import unquote


class Gates:
    """Gates by name; one that was opened stays open."""

    def __init__(self) -> None:
        self._reached: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._opened: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._left: dict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def pass_(self, name: str) -> None:
        """Waits until somebody opens the gate."""
        self._reached[name].set()
        try:
            await self._opened[name].wait()
        except asyncio.CancelledError:
            self._left[name].set()
            raise

    @contextlib.asynccontextmanager
    async def served(self) -> AsyncGenerator[str]:
        """Yields the URL at which a request opens a gate, or is answered once a node waits there or was cancelled."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            yield f"http://127.0.0.1:{port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        verb, name = unquote(head.split(b" ")[1].decode()).lstrip("/").split("/", 1)
        if verb == "open":
            self._opened[name].set()
        else:
            await {"reached": self._reached, "left": self._left}[verb][name].wait()
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()
