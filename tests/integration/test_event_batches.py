"""Events of many turns share a statement; what becomes of one turn is no other's concern."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from adapter.errors import NotStorable, StaleAttempt, StoreUnavailable
from adapter.event_batches import EventBatches
from adapter.store import requests
from adapter.store.claims import Claim
from adapter.store.event_log import Event
from adapter.store.pool import Pool, create_pool, fetch_all
from adapter.writer import FencedWriter
from api import event_pages
from api.event_pages import EventPages
from tests import rows


@pytest_asyncio.fixture
async def pool(database_url: str) -> AsyncGenerator[Pool]:
    async with create_pool(database_url, size=8, name="test") as opened:
        yield opened


async def claimed(pool: Pool, thread: str | None = None, attempt: int = 1) -> Claim:
    if thread is None:
        thread = str(uuid.uuid4())
        await requests.create_thread(pool, thread, {})
    return await rows.claim(pool, thread, "", 1, attempt)


async def writer_of(pool: Pool, batches: EventBatches) -> FencedWriter:
    it = await claimed(pool)
    _, turn_id = await rows.record(pool, it.thread_id)
    return FencedWriter(pool, it, turn_id, token_delay=0, batches=batches)


def token(number: int) -> Event:
    return Event("messages", str(number), f"message-{number}", task="node:1")


async def log_of(pool: Pool, writer: FencedWriter) -> list[tuple[int, str]]:
    rows = await fetch_all(pool, "read_events", turn_id=writer.turn_id, after=0, limit=1000)
    return [(row["offset"], row["data"]) for row in rows]


async def test_many_turns_share_few_statements(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    store = EventBatches._places  # pyright: ignore[reportPrivateUsage]

    async def counted(self: EventBatches, batches: list[object]) -> frozenset[int]:
        sizes.append(len(batches))
        return await store(self, batches)  # type: ignore[arg-type]

    monkeypatch.setattr(EventBatches, "_places", counted)
    batches = EventBatches(pool)
    writers = [await writer_of(pool, batches) for _ in range(30)]
    async with AsyncExitStack() as open_writers:
        for writer in writers:
            await open_writers.enter_async_context(writer)
        for number in range(1, 21):
            for writer in writers:
                writer.emit(token(number))
            await asyncio.sleep(0.002)

    for writer in writers:
        assert await log_of(pool, writer) == [(n, str(n)) for n in range(1, 21)]
    assert max(sizes) > 10 and len(sizes) <= 40


async def test_a_stale_one_is_told_and_the_others_go_on(pool: Pool) -> None:
    batches = EventBatches(pool)
    stale, other, deleted = [await writer_of(pool, batches) for _ in range(3)]
    await claimed(pool, stale.claim.thread_id, attempt=2)
    await fetch_all(pool, "delete_thread", thread_id=deleted.claim.thread_id)

    async def say(writer: FencedWriter) -> None:
        async with writer:
            writer.emit(token(1))

    told = await asyncio.gather(say(stale), say(other), say(deleted), return_exceptions=True)

    assert isinstance(told[0], StaleAttempt) and told[1] is None and isinstance(told[2], StaleAttempt)
    assert await log_of(pool, stale) == []
    assert await log_of(pool, other) == [(1, "1")]


async def test_one_that_is_locked_waits_alone(pool: Pool) -> None:
    batches = EventBatches(pool)
    locked, other = [await writer_of(pool, batches) for _ in range(2)]
    async with AsyncExitStack() as open_writers:
        for writer in (locked, other):
            await open_writers.enter_async_context(writer)
        async with pool.connection() as conn, conn.transaction():
            await conn.execute("SELECT 1 FROM turns.turn WHERE turn_id = %s FOR UPDATE", (locked.turn_id,))
            locked.emit(token(1))
            other.emit(token(1))
            async with asyncio.timeout(10):
                while not await log_of(pool, other):
                    await asyncio.sleep(0.01)
            assert await log_of(pool, locked) == []
        await locked.drain()
        locked.emit(token(2))

    assert await log_of(pool, locked) == [(1, "1"), (2, "2")]


@pytest.mark.parametrize(("key", "error"), [("a NUL: \x00", NotStorable), ("a surrogate: \ud800", Exception)])
async def test_what_cannot_be_stored_is_one_turns_error(pool: Pool, key: str, error: type[Exception]) -> None:
    batches = EventBatches(pool)
    odd, other = [await writer_of(pool, batches) for _ in range(2)]

    async def say(writer: FencedWriter, event: Event) -> None:
        async with writer:
            writer.emit(event)

    told = await asyncio.gather(
        say(odd, Event("messages", "1", key, task="node:1")),
        say(other, token(1)),
        return_exceptions=True,
    )

    assert isinstance(told[0], error) and told[1] is None
    assert await log_of(pool, other) == [(1, "1")]


async def test_pages_of_many_turns_are_read_at_once(pool: Pool) -> None:
    batches, pages = EventBatches(pool), EventPages(pool)
    writers = [await writer_of(pool, batches) for _ in range(100)]
    for count, writer in enumerate(writers):
        async with writer:
            for number in range(count % 5):
                writer.emit(token(number))

    found = await asyncio.gather(*(pages.read(writer.turn_id, 1) for writer in writers))
    gone = await pages.read(str(uuid.uuid4()), 0)

    for count, page in enumerate(found):
        assert {row["last_offset"] for row in page} == {count % 5}
        assert [row["offset"] for row in page if row["offset"]] == list(range(2, count % 5 + 1))
    assert list(gone) == []


async def test_an_answer_that_is_lost_stores_nothing_twice(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = EventBatches._places  # pyright: ignore[reportPrivateUsage]

    async def lost(self: EventBatches, batches: list[object]) -> frozenset[int]:
        await store(self, batches)  # type: ignore[arg-type]
        raise StoreUnavailable("the connection broke")

    monkeypatch.setattr(EventBatches, "_places", lost)
    writer = await writer_of(pool, EventBatches(pool))

    with pytest.raises(StoreUnavailable):
        async with writer:
            writer.emit(token(1))

    assert await log_of(pool, writer) == [(1, "1")]


async def test_a_wish_right_after_two_pages_is_read(monkeypatch: pytest.MonkeyPatch, pool: Pool) -> None:
    """Both readers end in the tick in which their last reader asks again."""
    answers: list[asyncio.Future[None]] = []

    async def answered(pool: Pool, name: str, **params: list[str]) -> list[dict[str, int]]:
        answers.append(asyncio.get_running_loop().create_future())
        await answers[-1]
        return [{"place": place} for place in range(1, len(params["turns"]) + 1)]

    monkeypatch.setattr(event_pages, "fetch_all", answered)
    pages = EventPages(pool)

    async def reads_on() -> None:
        await pages.read("x", 0)
        await pages.read("x", 1)

    reading = [asyncio.create_task(reads_on())]
    await asyncio.sleep(0.01)
    reading.append(asyncio.create_task(reads_on()))
    await asyncio.sleep(0.01)
    for _ in range(2):
        for answer in answers:
            if not answer.done():
                answer.set_result(None)
        await asyncio.sleep(0.01)
    for answer in answers:
        if not answer.done():
            answer.set_result(None)

    async with asyncio.timeout(1):
        await asyncio.gather(*reading)
