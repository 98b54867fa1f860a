"""Gates at which nodes wait until a Node script opens them, and the port on which it asks for that and more."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from urllib.parse import unquote


class Gates:
    """Gates by name; one that was opened stays open."""

    def __init__(self) -> None:
        self._reached: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._opened: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._left: dict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def pass_(self, name: str) -> bool:
        """Waits until somebody opens the gate; returns whether nobody came to it before."""
        first = not self._reached[name].is_set()
        self._reached[name].set()
        try:
            await self._opened[name].wait()
        except asyncio.CancelledError:
            self._left[name].set()
            raise
        return first

    async def _asked(self, verb: str, name: str, cut: Callable[[], None]) -> None:
        if verb == "open":
            self._opened[name].set()
        elif verb == "cut":
            cut()
        else:
            await {"reached": self._reached, "left": self._left}[verb][name].wait()

    @contextlib.asynccontextmanager
    async def served(self, cut: Callable[[], None]) -> AsyncGenerator[str]:
        """Yields the URL at which a request opens a gate, or is answered once a node waits there or was cancelled.

        Args:
            cut: called by a request to cut connections.
        """

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            verb, name = unquote(head.split(b" ")[1].decode()).lstrip("/").split("/", 1)
            await self._asked(verb, name, cut)
            writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            yield f"http://127.0.0.1:{port}"
