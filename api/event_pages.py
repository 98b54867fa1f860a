"""Owns the reading of turns' next events: what all streams of a process want at a time is read by one statement.

While it is under way, further wishes gather for the next one. Two may be under way, so that a long page of one turn, as
after a reconnect, does not keep the tokens of all others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from psycopg.rows import DictRow

from adapter.store.pool import Pool, fetch_all

_PAGE_EVENTS = 500
# Of all that is read at once. A page may be one event larger; an event is as large as the conversation it shows.
_PAGE_BYTES = 1_000_000
_UNDER_WAY = 2
_MOST_TURNS = 64


@dataclass(frozen=True, slots=True)
class _Wish:
    turn_id: str
    after: int
    read: asyncio.Future[Sequence[DictRow]]


class EventPages:
    """Reads pages for the streams of this process.

    Args:
        pool: PostgreSQL.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._wishes: list[_Wish] = []
        self._reading: set[asyncio.Task[None]] = set()

    async def read(self, turn_id: str, after: int) -> Sequence[DictRow]:
        """Returns the turn's position joined with its next events after an offset; nothing if the turn is gone.

        Raises:
            StoreUnavailable: retryable.
        """
        loop = asyncio.get_running_loop()
        wish = _Wish(turn_id, after, loop.create_future())
        self._wishes.append(wish)
        if len(self._reading) < _UNDER_WAY:
            reading = loop.create_task(self._read())
            self._reading.add(reading)
        return await wish.read

    async def _read(self) -> None:
        try:
            while self._wishes:
                wishes, self._wishes = self._wishes[:_MOST_TURNS], self._wishes[_MOST_TURNS:]
                await self._grant(wishes)
        finally:
            # Not in a callback of the task: whoever asks before that would take it for one that still reads.
            self._reading.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    async def _grant(self, wishes: Sequence[_Wish]) -> None:
        try:
            found = await self._pages(wishes)
        except Exception as exc:
            for wish in wishes:
                if not wish.read.done():
                    wish.read.set_exception(exc)
            return
        for place, wish in enumerate(wishes, 1):
            if not wish.read.done():  # its client may have left
                wish.read.set_result(found.get(place, ()))

    async def _pages(self, wishes: Sequence[_Wish]) -> dict[int, list[DictRow]]:
        rows = await fetch_all(
            self._pool,
            "read_turns",
            turns=[wish.turn_id for wish in wishes],
            afters=[wish.after for wish in wishes],
            limit=_PAGE_EVENTS,
            bytes=_PAGE_BYTES // len(wishes),
        )
        found: dict[int, list[DictRow]] = {}
        for row in rows:
            found.setdefault(row["place"], []).append(row)
        return found
