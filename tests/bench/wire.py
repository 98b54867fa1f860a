"""Owns the bench's HTTP client: one event loop, kept connections, no more work a response than must be.

A general client takes about as long for a token as the servers do, and would be measured instead of them.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from typing import Any, Final, cast
from urllib.parse import urlsplit

import httptools
import orjson

_END_OF_EVENT: Final = re.compile(rb"\r?\n\r?\n")
_TOKEN: Final = re.compile(rb'"content":\s?"(\d{6,}) "')


class Refused(Exception):
    """A contender did not do what it was asked to."""


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self._parser: Any = httptools.HttpResponseParser(self)
        self._ended: asyncio.Future[int] | None = None
        self._sink: Callable[[bytes], object] = lambda _: None

    @property
    def usable(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    def ask(self, request: bytes, sink: Callable[[bytes], object]) -> asyncio.Future[int]:
        assert self.transport is not None
        self._ended = asyncio.get_running_loop().create_future()
        self._sink = sink
        self.transport.write(request)
        return self._ended

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._sink(body)

    def on_message_complete(self) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(self._parser.get_status_code())
        if not self._parser.should_keep_alive() and self.transport is not None:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_exception(Refused("the connection broke"))


class Http:
    """Sends requests to one server."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._idle: list[_Connection] = []

    async def ask(self, method: str, path: str, body: Any, sink: Callable[[bytes], object]) -> int:
        """Sends a request, gives its response's body to `sink` as it comes; returns the status."""
        content = b"" if body is None else orjson.dumps(body)
        head = (
            f"{method} {path} HTTP/1.1\r\nhost: {self._host}:{self._port}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
        )
        connection = await self._connection()
        try:
            status = await connection.ask(head.encode() + content, sink)
        except BaseException:
            if connection.transport is not None:
                connection.transport.abort()
            raise
        self._idle.append(connection)
        return status

    async def post(self, path: str, body: Any) -> bytes:
        """Returns the body of the answer to a POST.

        Raises:
            Refused: the answer is an error.
        """
        parts: list[bytes] = []
        status = await self.ask("POST", path, body, parts.append)
        if status >= 300:
            raise Refused(f"{path.rpartition('/')[2]} answered {status}: {b''.join(parts)[:200].decode()}")
        return b"".join(parts)

    async def tokens(self, path: str, body: Any) -> list[tuple[float, float]]:
        """Streams a turn; returns when each token was said and when it was here, in seconds of the monotonic clock."""
        got: list[tuple[float, float]] = []
        left = b""

        def sink(part: bytes) -> None:
            nonlocal left
            now = time.monotonic()
            *whole, left = _END_OF_EVENT.split(left + part)
            for event in whole:
                if event.startswith(b"event: messages") and (said := _TOKEN.search(event)):
                    got.append((int(said[1]) / 1e9, now))

        status = await self.ask("POST", path, body, sink)
        if status >= 300:
            raise Refused(f"stream answered {status}: {left[:200].decode()}")
        return got

    def close(self) -> None:
        """Ends idle connections."""
        for connection in self._idle:
            if connection.transport is not None:
                connection.transport.abort()
        self._idle.clear()

    async def _connection(self) -> _Connection:
        while self._idle:
            if (idle := self._idle.pop()).usable:
                return idle
        _, made = await asyncio.get_running_loop().create_connection(_Connection, self._host, self._port)
        return made
