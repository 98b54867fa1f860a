"""Events that tell of a write are stored with it, never before; tokens do not wait for company for long (I8)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from adapter.errors import StaleAttempt
from adapter.store.claims import Claim, take
from adapter.store.event_log import Event
from adapter.store.pool import Connection, Pool, create_pool, fetch_all
from adapter.writer import FencedWriter
from tests import rows


@pytest_asyncio.fixture
async def opened(database_url: str) -> AsyncIterator[tuple[Pool, FencedWriter]]:
    async with create_pool(database_url, size=4, name="test") as pool:
        thread, turn_id = await rows.record(pool)
        async with FencedWriter(pool, await rows.claim(pool, thread), turn_id, token_delay=0.005) as writer:
            yield pool, writer


async def stored(pool: Pool, writer: FencedWriter) -> list[str]:
    rows = await fetch_all(pool, "read_events", turn_id=writer.turn_id, after=0, limit=100)
    return [row["event"] for row in rows]


async def nothing(_: Connection) -> None:
    return None


async def test_an_event_waits_for_its_write(opened: tuple[Pool, FencedWriter]) -> None:
    pool, writer = opened
    writer.emit(Event("values", "1", need=("checkpoint", "", "c1")))
    writer.emit(Event("custom", "1"))
    await writer.write(nothing)
    assert await stored(pool, writer) == []

    await writer.write(nothing, provides=("checkpoint", "", "c1"))

    assert await stored(pool, writer) == ["values", "custom"]


async def test_events_before_it_do_not_wait(opened: tuple[Pool, FencedWriter]) -> None:
    pool, writer = opened
    writer.emit(Event("custom", "1"))
    writer.emit(Event("values", "1", need=("checkpoint", "", "c1")))

    await writer.write(nothing)

    assert await stored(pool, writer) == ["custom"]


async def test_an_event_whose_write_never_comes_is_not_kept_back_for_ever(
    opened: tuple[Pool, FencedWriter], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, writer = opened
    monkeypatch.setattr("adapter.writer._NEED_SECONDS", 0.1)
    writer.emit(Event("values", "1", need=("checkpoint", "", "never")))
    async with asyncio.timeout(5):
        while not await stored(pool, writer):
            await asyncio.sleep(0.01)

    assert await stored(pool, writer) == ["values"]


async def test_an_event_waits_for_its_write_behind_slow_ones(
    opened: tuple[Pool, FencedWriter], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, writer = opened
    monkeypatch.setattr("adapter.writer._NEED_SECONDS", 0.5)
    writer.emit(Event("values", "1", need=("checkpoint", "", "c1")))
    for _ in range(3):
        await writer.write(_slow)
        assert await stored(pool, writer) == []

    await writer.write(nothing, provides=("checkpoint", "", "c1"))

    assert await stored(pool, writer) == ["values"]


async def _slow(conn: Connection) -> None:
    await conn.execute("SELECT pg_sleep(0.4)")


async def test_writes_queued_together_share_a_transaction(opened: tuple[Pool, FencedWriter]) -> None:
    _, writer = opened
    ids: list[int] = []

    async def note(conn: Connection) -> None:
        row = await (await conn.execute("SELECT txid_current() AS id")).fetchone()
        assert row is not None
        ids.append(row["id"])

    await asyncio.gather(*(writer.write(note) for _ in range(50)))

    assert len(ids) == 50
    assert len(set(ids)) <= 3


async def test_leaving_stores_what_is_left(opened: tuple[Pool, FencedWriter]) -> None:
    pool, writer = opened
    writer.emit(Event("values", "1", need=("checkpoint", "", "never")))

    await writer.drain()

    assert await stored(pool, writer) == ["values"]


async def test_what_was_queued_is_stored_before_a_cancelled_attempt_ends(
    opened: tuple[Pool, FencedWriter],
) -> None:
    pool, outer = opened
    storing, go = asyncio.Event(), asyncio.Event()

    async def slow(_: Connection) -> None:
        storing.set()
        await go.wait()

    async def attempt() -> None:
        async with FencedWriter(pool, outer.claim, outer.turn_id, token_delay=0.005) as writer:
            writer.emit(Event("custom", "1"))
            await writer.write(slow)

    running = asyncio.create_task(attempt())
    await storing.wait()
    for _ in range(3):
        running.cancel()
        await asyncio.sleep(0.01)
    assert not running.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await stored(pool, outer) == ["custom"]


async def test_a_cancelled_attempt_that_is_stale_says_so(opened: tuple[Pool, FencedWriter]) -> None:
    pool, outer = opened
    newer = Claim(outer.claim.thread_id, "", 2, 1)
    begun = asyncio.Event()

    async def attempt() -> None:
        async with FencedWriter(pool, outer.claim, outer.turn_id, token_delay=60) as writer:
            writer.emit(Event("custom", "1"))
            begun.set()
            await asyncio.sleep(60)

    running = asyncio.create_task(attempt())
    await begun.wait()
    async with pool.connection() as conn:
        await take(conn, newer, pool)
    running.cancel()

    with pytest.raises(StaleAttempt, match="is claimed by 2/1, not by this attempt 1/1"):
        await running


async def test_the_first_token_does_not_wait(opened: tuple[Pool, FencedWriter]) -> None:
    pool, outer = opened
    async with FencedWriter(pool, outer.claim, outer.turn_id, token_delay=60) as writer:
        await writer.write(nothing)  # what a turn begins with

        writer.emit(Event("messages", "1", task="node:1"))

        async with asyncio.timeout(10):
            while await stored(pool, writer) != ["messages"]:
                await asyncio.sleep(0.01)
