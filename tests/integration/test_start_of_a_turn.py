"""What is stored when a turn starts, all of it or nothing."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from adapter.errors import NotFound
from adapter.store import node_errors
from adapter.store.pool import Pool, create_pool, one_trip
from adapter.store.sql import query
from tests import rows


@pytest_asyncio.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    async with create_pool(database_url, size=2, name="test") as it:
        yield it


async def test_a_turn_that_was_cancelled_is_not_started(pool: Pool) -> None:
    """Nor does its thread count as the one that goes on with it; the statement that says so is refused as a whole."""
    thread, turn_id = await rows.record(pool)
    await _note_an_error(pool, thread)
    async with pool.connection() as conn:
        cancelled = await conn.execute(query("cancel_pending"), {"turn_id": turn_id})
        assert cancelled.rowcount == 1
    with pytest.raises(NotFound, match=f"turn {turn_id} was cancelled or discarded"):
        async with one_trip(pool) as conn:
            await rows.start(conn, turn_id)
            await conn.execute(query("ping"))
    async with pool.connection() as conn:
        turn = await rows.load(conn, turn_id)
    assert (turn.status, turn.origin, turn.thread_origin) == ("interrupted", None, None)
    assert await _errors(pool, thread) == 1


async def test_a_turn_that_begins_anew_needs_no_errors_of_the_turns_before(pool: Pool) -> None:
    thread, turn_id = await rows.record(pool)
    await _note_an_error(pool, thread)
    async with one_trip(pool) as conn:
        await rows.start(conn, turn_id)
    assert await _errors(pool, thread) == 0


async def _note_an_error(pool: Pool, thread: str) -> None:
    async with pool.connection() as conn:
        await node_errors.store(conn, thread, str(uuid.uuid4()), ValueError("before"))


async def _errors(pool: Pool, thread: str) -> int:
    async with pool.connection() as conn:
        found = await conn.execute("SELECT 1 FROM turns.node_error WHERE thread_id = %s", (thread,))
        return len(await found.fetchall())
