"""Owns the reading side of the event log: who waits for what, and events after an offset.

One connection per process listens; it only says *that* something changed. What changed is read by offset, so
a missed notice costs time and never an event. A stream holds a pool connection while it reads and none while
it waits (I10). Next: `api/sse.py` puts the events on the wire.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg.rows import DictRow

from adapter.errors import StoreUnavailable
from adapter.store.pool import Pool, fetch_one
from adapter.store.sql import query
from adapter.store.turns import FINAL
from api.event_pages import EventPages

log = logging.getLogger("turns.api")

# A listening connection that died without a word is found out this late at most.
_PING_SECONDS = 10.0
_RECONNECT_SECONDS = 0.5
# A turn that was pending a moment ago has not ended yet; it is looked at only now, should that be wrong.
_PENDING_SECONDS = 0.1
# Behind a turn's id: it has new events, but stands as it did.
_EVENTS = "+"


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """One line of a turn's log.

    Attributes:
        offset: its number in the turn, from 1.
        name: its name on the wire.
        data: its JSON.
    """

    offset: int
    name: str
    data: str


Wanted = Callable[[str], bool]


class EventHub:
    """The process's listening connection; wakes whoever waits for a turn or a thread.

    Args:
        database_url: a connection of its own, since a listening one cannot go back to the pool.
        pool: of the same server. When the listening connection broke, the pool's may be broken, too; each of them would
            cost a request.
    """

    def __init__(self, database_url: str, pool: Pool) -> None:
        self._database_url = database_url
        self._pool = pool
        # Turn or thread id ► who waits for it. Only touched on the event loop.
        self._waiting: dict[str, set[asyncio.Event]] = {}

    @contextmanager
    def watch(self, *ids: str) -> Generator[asyncio.Event]:
        """Yields an event that is set whenever one of these turns or threads changes.

        Enter before reading: a change between reading and waiting then wakes at once.
        """
        woken = asyncio.Event()
        for one in ids:
            self._waiting.setdefault(one, set()).add(woken)
        try:
            yield woken
        finally:
            for one in ids:
                waiting = self._waiting[one]
                waiting.discard(woken)
                if not waiting:
                    del self._waiting[one]

    async def listen(self) -> None:
        """Listens until cancelled, over as many connections as it takes."""
        failed = False
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(
                    self._database_url,
                    autocommit=True,
                    connect_timeout=5,
                    application_name="turns-api-events",
                ) as conn:
                    await conn.execute(query("listen"))
                    if failed:
                        await self._pool.check()
                        log.info("events are delivered at once again")
                    # Nobody listened until now: everybody looks again.
                    for one in list(self._waiting):
                        self._wake(one)
                    failed = False
                    await self._deliver(conn)
            except (psycopg.Error, OSError, TimeoutError) as exc:
                if not failed:
                    log.warning("events are late until PostgreSQL is back: %s", type(exc).__name__)
                failed = True
                await asyncio.sleep(_RECONNECT_SECONDS)

    async def _deliver(self, conn: psycopg.AsyncConnection[tuple[object, ...]]) -> None:
        while True:
            async for notice in conn.notifies(timeout=_PING_SECONDS):
                self._wake(notice.payload)
            async with asyncio.timeout(_PING_SECONDS):
                await conn.execute(query("ping"))

    def _wake(self, one: str) -> None:
        for woken in self._waiting.get(one, ()):
            woken.set()


class EventStreams:
    """Reads turns as they grow.

    Args:
        pool: PostgreSQL.
        hub: tells when to look.
        idle_seconds: of silence, after which a reader yields nothing, so that its caller can show it lives.
    """

    def __init__(self, pool: Pool, hub: EventHub, *, idle_seconds: float) -> None:
        self._pool = pool
        self._pages = EventPages(pool)
        self._hub = hub
        self._idle_seconds = idle_seconds

    async def follow(
        self, turn_id: str, after: int, wanted: Wanted | None = None
    ) -> AsyncGenerator[Sequence[StoredEvent]]:
        """Yields a turn's events after an offset, in pages, until it has ended and all are read.

        Events that were deleted since (`event_retention`) are passed over.

        An empty page is yielded after every `idle_seconds` without one. A database that is away for a while
        is waited for: the log is still there when it is back.
        """
        with self._hub.watch(turn_id, turn_id + _EVENTS) as woken:
            silent_since = asyncio.get_running_loop().time()
            while True:
                woken.clear()
                rows = await self._read(turn_id, after)
                if rows is None:
                    woken.set()  # look again after a short wait
                    await asyncio.sleep(_RECONNECT_SECONDS)
                elif not rows:
                    return  # deleted
                else:
                    page = [StoredEvent(r["offset"], r["event"], r["data"]) for r in rows if r["offset"]]
                    after = page[-1].offset if page else after
                    shown = page if wanted is None else [e for e in page if wanted(e.name)]
                    if shown:
                        yield shown
                        silent_since = asyncio.get_running_loop().time()
                    if page and after < rows[0]["last_offset"]:
                        continue
                    if rows[0]["status"] in FINAL:
                        return
                left = silent_since + self._idle_seconds - asyncio.get_running_loop().time()
                if left <= 0 or not await _woken_within(woken, left):
                    yield ()
                    silent_since = asyncio.get_running_loop().time()

    async def _read(self, turn_id: str, after: int) -> Sequence[DictRow] | None:
        """Returns the turn's position joined with its next events; none if it is gone, None if unknown."""
        try:
            return await self._pages.read(turn_id, after)
        except StoreUnavailable:
            return None

    async def until_final(self, turn_id: str, *, pending: bool = False) -> AsyncGenerator[DictRow | None]:
        """Yields None after every `idle_seconds` of waiting, then the outcome once the status is final.

        Ends without an outcome when the turn was deleted.

        Args:
            turn_id: the turn.
            pending: whether it was a moment ago, so that there is nothing to read yet.
        """
        with self._hub.watch(turn_id) as woken:
            if pending:
                await _woken_within(woken, _PENDING_SECONDS)
            while True:
                woken.clear()
                try:
                    row = await fetch_one(self._pool, "turn_outcome", turn_id=turn_id)
                except StoreUnavailable:
                    await asyncio.sleep(_RECONNECT_SECONDS)
                    woken.set()
                else:
                    if row is None:
                        return
                    if row["status"] in FINAL:
                        yield row
                        return
                if not await _woken_within(woken, self._idle_seconds):
                    yield None

    async def final(self, turn_id: str) -> DictRow | None:
        """Waits for a turn's final status; returns its outcome, or None when it was deleted."""
        async for row in self.until_final(turn_id):
            if row is not None:
                return row
        return None


async def _woken_within(woken: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await woken.wait()
    except TimeoutError:
        return False
    return True
