"""Owns the events that are stored alone, such as tokens: those of all turns of a process share one statement.

While one statement is under way, what the turns say meanwhile gathers for the next, so a hundred streams cost little
more than one. A turn has one batch under way at a time, which keeps its events in order (I9). What cannot be stored
this way, for whatever reason, is left to the turn's own transaction, which waits or says why not.
Next: `adapter/writer.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from adapter.errors import StoreUnavailable
from adapter.store.claims import Claim
from adapter.store.event_log import Event
from adapter.store.pool import Pool, store_errors
from adapter.store.sql import query


@dataclass(frozen=True, slots=True)
class _Batch:
    claim: Claim
    turn_id: str
    events: Sequence[Event]
    stored: asyncio.Future[bool]


class EventBatches:
    """Stores events of the turns that run in this process.

    Args:
        pool: PostgreSQL.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._waiting: list[_Batch] = []
        self._storing: asyncio.Task[None] | None = None

    async def append(self, claim: Claim, turn_id: str, events: Sequence[Event]) -> bool:
        """Stores events under a claim of a whole thread; returns whether they were stored.

        Raises:
            StoreUnavailable: retryable.
        """
        loop = asyncio.get_running_loop()
        batch = _Batch(claim, turn_id, events, loop.create_future())
        self._waiting.append(batch)
        if self._storing is None:
            self._storing = loop.create_task(self._store())
        return await batch.stored

    async def _store(self) -> None:
        try:
            while self._waiting:
                batches, self._waiting = self._waiting, []
                try:
                    places = await self._places(batches)
                except BaseException as exc:
                    # Whether it was stored is not known, as with any transaction whose answer is lost.
                    for batch in batches:
                        if not batch.stored.done():
                            batch.stored.set_exception(exc)
                    if not isinstance(exc, Exception):
                        raise
                    continue
                for place, batch in enumerate(batches, 1):
                    if not batch.stored.done():
                        batch.stored.set_result(place in places)
        finally:
            self._storing = None

    async def _places(self, batches: Sequence[_Batch]) -> frozenset[int]:
        """Stores what can be stored; returns the places, from 1, of those batches."""
        every = [(place, nth, e) for place, b in enumerate(batches, 1) for nth, e in enumerate(b.events, 1)]
        params = {
            "turns": [b.turn_id for b in batches],
            "threads": [b.claim.thread_id for b in batches],
            "tokens": [b.claim.token for b in batches],
            "attempts": [b.claim.attempt for b in batches],
            "counts": [len(b.events) for b in batches],
            "places": [place for place, _, _ in every],
            "nths": [nth for _, nth, _ in every],
            "events": [e.name for _, _, e in every],
            "keys": [e.key for _, _, e in every],
            "tasks": [e.task for _, _, e in every],
            "datas": [e.data for _, _, e in every],
        }
        try:
            async with store_errors(), self._pool.connection() as conn:
                rows = await (await conn.execute(query("append_events_of_many"), params)).fetchall()
        except StoreUnavailable:
            raise
        except Exception:
            return frozenset()  # one of them is to blame, and none is stored
        return frozenset(row["place"] for row in rows)
