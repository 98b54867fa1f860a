"""Owns one request of the experiment's client: a booking asked for, read to the end or left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import httpx

AMOUNT = 80
LEAVE_AFTER = 2  # chunks of values: the input, and what `plan` made of it; the charge is next


@dataclass(frozen=True)
class Asked:
    """A booking that was asked for.

    Attributes:
        booking: its id, which no other request has.
        run: the run that the server names, if it does.
        ended: whether the stream came to its end; not when the client left, nor when the server went.
    """

    booking: str
    run: str | None
    ended: bool


@dataclass(frozen=True)
class Client:
    """Asks for bookings; every request on a connection of its own, so that any process may get it.

    Attributes:
        url: of the server.
        on_disconnect: what the requests say should become of their turn when the client leaves.
    """

    url: str
    on_disconnect: str = "continue"

    async def ask(
        self,
        thread: str,
        booking: str,
        *,
        linger: float | None = None,
        key: str | None = None,
        opened: Callable[[int], None] | None = None,
    ) -> Asked:
        """Asks for one booking.

        Args:
            thread: the conversation.
            booking: its id.
            linger: leave so many seconds after the second chunk; None reads to the end.
            key: sent as the request's idempotency key.
            opened: told the connection's port on this side, once the response has begun.
        """
        body = {
            "assistant_id": "booking",
            "input": {"messages": [{"role": "user", "content": f"book {booking} for {AMOUNT}"}]},
            "stream_mode": "values",
            "if_not_exists": "create",
            "on_disconnect": self.on_disconnect,
        }
        headers = {"Idempotency-Key": key} if key else {}
        run: str | None = None
        try:
            async with (
                httpx.AsyncClient(base_url=self.url, timeout=60, trust_env=False) as http,
                http.stream("POST", f"/threads/{thread}/runs/stream", json=body, headers=headers) as answered,
            ):
                answered.raise_for_status()
                run = answered.headers.get("content-location", "").rpartition("/")[2] or None
                if opened is not None:
                    opened(answered.extensions["network_stream"].get_extra_info("client_addr")[1])
                chunks = 0
                async for line in answered.aiter_lines():
                    chunks += line == "event: values"
                    if linger is not None and chunks == LEAVE_AFTER and not line:
                        await asyncio.sleep(linger)
                        return Asked(booking, run, ended=False)
        except httpx.TransportError:
            return Asked(booking, run, ended=False)
        return Asked(booking, run, ended=True)
