"""Owns a client of one run: it knows what it has read, may die after any byte, and goes on where it was."""

from __future__ import annotations

import sys
import uuid
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

import httpx

from api.sse import HEARTBEAT
from tests.api.serving import Event, Whole

MODES = ["values", "updates", "messages-tuple", "custom", "tasks"]


def _fresh() -> str:
    return str(uuid.uuid4())


@dataclass
class Reading:
    """A run as one client knows it.

    Attributes:
        mark: what the run speaks of.
        gate: the file that it waits for, if it does.
        thread: its thread.
        key: the Idempotency-Key that it is sent with.
        run: its id, once an answer told it.
        events: what was read, whole events only.
        inside: how often a client died inside an event.
        heartbeats: how many came in the pauses.
    """

    mark: str
    gate: str = ""
    thread: str = field(default_factory=_fresh)
    key: str = field(default_factory=_fresh)
    run: str | None = None
    events: list[Event] = field(default_factory=list[Event])
    inside: int = 0
    heartbeats: int = 0

    def body(self) -> dict[str, Any]:
        """Returns the request that starts it."""
        return {
            "assistant_id": "telling",
            "input": {"mark": self.mark, "gate": self.gate},
            "stream_mode": MODES,
            "stream_subgraphs": True,
            "if_not_exists": "create",
        }

    def another(self) -> Reading:
        """Returns another client's view of the same run; it has read nothing yet."""
        return Reading(self.mark, self.gate, self.thread, self.key)

    async def send(self, http: httpx.AsyncClient) -> None:
        """Starts the run without reading its stream."""
        path = f"/threads/{self.thread}/runs"
        answered = await http.post(path, json=self.body(), headers={"Idempotency-Key": self.key})
        self.run = str(answered.raise_for_status().json()["run_id"])

    async def read(self, http: httpx.AsyncClient, most: int = sys.maxsize) -> bool:
        """Reads on to the stream's end, which is True, or until so many bytes have come, which drops the connection.

        With 0 it does not even look at the answer's head.

        Raises:
            httpx.TransportError: the connection broke.
        """
        async with self._asked(http) as answered:
            answered.raise_for_status()
            if not most:
                return False
            self.run = answered.headers["content-location"].rpartition("/")[2]
            whole = Whole()
            async for chunk in answered.aiter_raw():
                self.heartbeats += chunk.count(HEARTBEAT)
                self.events += whole.take(chunk[:most])
                most -= len(chunk)
                if most <= 0:
                    self.inside += bool(whole.left)
                    return False
        return True

    def _asked(self, http: httpx.AsyncClient) -> AbstractAsyncContextManager[httpx.Response]:
        path = f"/threads/{self.thread}/runs"
        if self.run is None:
            headers = {"Idempotency-Key": self.key}
            return http.stream("POST", f"{path}/stream", json=self.body(), headers=headers)
        last = (self.events[-1].id if self.events else None) or "-1"
        return http.stream("GET", f"{path}/{self.run}/stream", headers={"Last-Event-ID": last})
