"""Owns responses that last: server-sent events, JSON that is waited for, and noticing that a client left.

A client that leaves is noticed at once, also in silence, because the response reads the connection while it
writes. When the process itself stops, streams end cleanly and no turn is touched: clients see a run that goes
on and come back (to another process) with the last id they have.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

HEARTBEAT = b": heartbeat\r\n\r\n"
WAITING = b"\n"

_SSE_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "connection": "keep-alive",
    "x-accel-buffering": "no",
}

Leave = Callable[[], Awaitable[None]]


def frame(name: str, data: str, offset: int | None = None) -> bytes:
    """Returns one event. JSON has no raw line breaks, so one `data` line holds it."""
    id_line = "" if offset is None else f"id: {offset}\r\n"
    return f"event: {name}\r\ndata: {data}\r\n{id_line}\r\n".encode()


class LastingResponse(Response):
    """A response whose body takes as long as a turn.

    Args:
        body: its chunks; closed when the client leaves or the process stops.
        closing: set when the process stops.
        on_leave: called when the client leaves before the end; not when the process stops.
        complete_on_close: whether a stopping process ends the body as if it were whole. A body that a client
            must not take for whole is cut off instead, which is what makes the client ask again.
    """

    def __init__(
        self,
        body: AsyncGenerator[bytes],
        *,
        headers: Mapping[str, str],
        closing: asyncio.Event,
        on_leave: Leave | None = None,
        complete_on_close: bool,
    ) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers(headers)
        self._body = body
        self._closing = closing
        self._on_leave = on_leave
        self._complete_on_close = complete_on_close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Writes until the body ends, the client leaves or the process stops, whichever is first."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        writing = asyncio.create_task(self._write(send))
        leaving = asyncio.create_task(_left(receive))
        closing = asyncio.create_task(self._closing.wait())
        tasks: set[asyncio.Task[object]] = {writing, leaving, closing}  # type: ignore[arg-type]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended = writing.done() and not writing.cancelled()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._body.aclose()
        if ended:
            writing.result()
        elif self._closing.is_set():
            if self._complete_on_close:
                await send(_chunk(b"", more=False))
        elif self._on_leave is not None:
            await self._on_leave()

    async def _write(self, send: Send) -> None:
        async for chunk in self._body:
            await send(_chunk(chunk, more=True))
        await send(_chunk(b"", more=False))


def event_source(
    body: AsyncGenerator[bytes],
    *,
    headers: Mapping[str, str] | None = None,
    closing: asyncio.Event,
    on_leave: Leave | None = None,
) -> LastingResponse:
    """Returns a stream of server-sent events."""
    return LastingResponse(
        body,
        headers={**(headers or {}), **_SSE_HEADERS},
        closing=closing,
        on_leave=on_leave,
        complete_on_close=True,
    )


def waiting_json(
    body: AsyncGenerator[bytes],
    *,
    headers: Mapping[str, str],
    closing: asyncio.Event,
    on_leave: Leave | None = None,
) -> LastingResponse:
    """Returns a JSON document that may take long: line breaks, which JSON allows, until it is there."""
    return LastingResponse(
        body,
        headers={**headers, "content-type": "application/json"},
        closing=closing,
        on_leave=on_leave,
        complete_on_close=False,
    )


def _chunk(body: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
