"""Owns one conversation's client: it sends turns, and comes back to them whatever breaks."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx

from tests.api.serving import Whole

AMOUNT = 80
PAUSE_SECONDS = 0.3  # at most, between two turns of a conversation
FINAL = frozenset({"success", "error", "interrupted", "timeout"})


@dataclass
class Turn:
    """A turn as its client knows it.

    Attributes:
        booking: what it asks for; no other turn asks for the same.
        key: its Idempotency-Key.
        run: its run's id, once it was accepted.
        offsets: the ids of the events it has shown, in order.
        status: how it ended.
        breaks: how often its stream broke.
    """

    booking: str
    key: str
    run: str | None = None
    offsets: list[int] = field(default_factory=list[int])
    status: str | None = None
    breaks: int = 0


@dataclass
class Conversation:
    """A thread and its turns, in the order in which they are sent.

    Attributes:
        number: which conversation it is.
        thread: its thread.
        turns: those sent so far.
    """

    number: int
    thread: str = field(default_factory=lambda: str(uuid.uuid4()))
    turns: list[Turn] = field(default_factory=list[Turn])

    async def hold(
        self, http: httpx.AsyncClient, turns: int, goes_on: Callable[[], bool], chosen: random.Random
    ) -> None:
        """Sends so many turns, and more while it goes on; follows each to its end.

        Every other conversation sends a turn as soon as the one before was accepted, while two others are not ended,
        and not when it has ended.
        """
        ahead = asyncio.Semaphore(1 if self.number % 2 else 3)
        async with asyncio.TaskGroup() as following:
            while len(self.turns) < turns or goes_on():
                booking = f"{self.thread[:8]}-{self.number}-{len(self.turns) + 1}"
                await ahead.acquire()
                turn = Turn(booking, str(uuid.uuid4()))
                self.turns.append(turn)
                accepted = asyncio.Event()
                task = following.create_task(_to_its_end(http, self.thread, turn, accepted))
                task.add_done_callback(lambda _: ahead.release())
                await accepted.wait()
                await asyncio.sleep(chosen.uniform(0, PAUSE_SECONDS))


async def _to_its_end(http: httpx.AsyncClient, thread: str, turn: Turn, accepted: asyncio.Event) -> None:
    """Sends a turn and reads its stream until the run has ended and a further look brings nothing new.

    A stream may also end because its server stops, which looks the same as the run's end.
    """
    shown = -1
    while turn.status not in FINAL or shown < len(turn.offsets):
        shown = len(turn.offsets)
        try:
            if turn.run is None:
                await _send(http, thread, turn, accepted)
            else:
                await _rejoin(http, thread, turn)
            if turn.status not in FINAL:
                answered = await http.get(f"/threads/{thread}/runs/{turn.run}")
                turn.status = answered.raise_for_status().json()["status"]
                shown = -1
        except (httpx.TransportError, httpx.HTTPStatusError, TimeoutError):
            turn.breaks += 1
            shown = -1
            await asyncio.sleep(0.3)


async def _send(http: httpx.AsyncClient, thread: str, turn: Turn, accepted: asyncio.Event) -> None:
    body = {
        "assistant_id": "booking",
        "input": {"messages": [{"role": "user", "content": f"book {turn.booking} for {AMOUNT}"}]},
        "stream_mode": ["updates", "values"],
        "if_not_exists": "create",
    }
    headers = {"Idempotency-Key": turn.key}
    async with http.stream("POST", f"/threads/{thread}/runs/stream", json=body, headers=headers) as answered:
        await _checked(answered)
        turn.run = answered.headers["content-location"].rpartition("/")[2]
        accepted.set()
        await _read(answered, turn)


async def _rejoin(http: httpx.AsyncClient, thread: str, turn: Turn) -> None:
    last = str(turn.offsets[-1]) if turn.offsets else "-1"
    path = f"/threads/{thread}/runs/{turn.run}/stream"
    async with http.stream("GET", path, headers={"Last-Event-ID": last}) as answered:
        await _checked(answered)
        await _read(answered, turn)


async def _checked(answered: httpx.Response) -> None:
    if answered.status_code < 500:
        assert answered.status_code == 200, (answered.status_code, await answered.aread())
    answered.raise_for_status()


async def _read(answered: httpx.Response, turn: Turn) -> None:
    whole = Whole()  # what a broken connection leaves of an event is dropped
    async for chunk in answered.aiter_raw():
        turn.offsets += [int(event.id) for event in whole.take(chunk) if event.id is not None]
