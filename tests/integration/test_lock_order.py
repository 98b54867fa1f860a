"""Whoever changes a thread takes the same locks in the same order as an attempt does: fence, thread, turn.

In another order both would wait for each other, until PostgreSQL ends one of them: a request with an error, or an
attempt, whose node then runs again.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable

import psycopg
import pytest
import pytest_asyncio

from adapter.errors import NotFound
from adapter.store import requests, stops, thread_prune, turns
from adapter.store.claims import Claim, assert_claim, take
from adapter.store.pool import Connection, Pool, create_pool, store_errors
from adapter.store.sql import query
from tests import rows


@pytest_asyncio.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    async with create_pool(database_url, size=4, name="test") as it:
        yield it


async def _ends(conn: Connection, turn_id: str) -> None:
    await turns.finish(conn, turn_id, status="success", thread_status="idle")


async def _takes_up(conn: Connection, turn_id: str) -> None:
    await turns.adopt(conn, await rows.load(conn, turn_id), str(uuid.uuid4()), rewound=True)


ATTEMPTS = pytest.mark.parametrize(
    "attempt", [_ends, rows.start, _takes_up], ids=["ends", "starts", "is adopted"]
)
Attempt = Callable[[Connection, str], Awaitable[None]]


@pytest_asyncio.fixture
async def turn(pool: Pool) -> tuple[str, str, Claim]:
    """A thread, a turn that waits on it, and the claim of an attempt."""
    thread, turn_id = await rows.record(pool)
    return thread, turn_id, await rows.claim(pool, thread, "", 10)


@ATTEMPTS
@pytest.mark.parametrize("abandons", [False, True], ids=["delete", "abandon"])
async def test_a_change_of_the_fence_waits_for_an_attempt(
    pool: Pool, turn: tuple[str, str, Claim], attempt: Attempt, abandons: bool
) -> None:
    thread, turn_id, claim = turn
    async with pool.connection() as conn, conn.transaction():
        await assert_claim(conn, claim)
        change = stops.abandon(pool, thread, turn_id) if abandons else requests.delete_thread(pool, thread)
        changing = asyncio.create_task(change)
        await _waits(pool)
        await attempt(conn, turn_id)
    await changing


async def test_a_first_attempt_waits_for_a_delete(pool: Pool) -> None:
    """No turn of the thread has begun, so nobody has claimed anything in it yet."""
    thread, _ = await rows.record(pool)
    async with pool.connection() as conn, conn.transaction():
        await conn.execute(query("lock_fence"), {"thread_id": thread})
        claiming = asyncio.create_task(rows.claim(pool, thread, "", 10))
        await _waits(pool)
        await conn.execute(query("delete_thread"), {"thread_id": thread})
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        await claiming


@pytest.mark.parametrize("attempt", [rows.start, _takes_up], ids=["starts", "is adopted"])
async def test_an_attempt_waits_for_a_cancel(
    pool: Pool, turn: tuple[str, str, Claim], attempt: Attempt
) -> None:
    _, turn_id, claim = turn

    async def attempted() -> None:
        with contextlib.suppress(NotFound):  # it was cancelled before it began
            async with store_errors(), pool.connection() as conn, conn.transaction():
                await assert_claim(conn, claim)
                await attempt(conn, turn_id)

    async with pool.connection() as conn, conn.transaction():
        await conn.execute(query("hold_thread_of"), {"turn_id": turn_id})
        attempting = asyncio.create_task(attempted())
        await _waits(pool)
        cancelled = await conn.execute(query("cancel_pending"), {"turn_id": turn_id})
        assert cancelled.rowcount == 1
    await attempting


async def test_pruning_leaves_a_thread_that_changes(pool: Pool) -> None:
    """It holds the thread when it gets to the fence, and so must not wait there."""
    thread = str(uuid.uuid4())
    await requests.create_thread(pool, thread, {})
    claim = Claim(thread, "", 10, 1)
    async with pool.connection() as conn:
        await take(conn, claim, pool)
    async with pool.connection() as conn, conn.transaction():
        await assert_claim(conn, claim)
        assert not await thread_prune.keep_latest(pool, thread)
    assert await thread_prune.keep_latest(pool, thread)


async def _waits(pool: Pool) -> None:
    """Returns when a session waits for a lock."""
    async with asyncio.timeout(10), pool.connection() as conn:
        while True:
            cursor = await conn.execute("SELECT 1 FROM pg_locks WHERE NOT granted")
            if await cursor.fetchone() is not None:
                return
            await asyncio.sleep(0.01)
