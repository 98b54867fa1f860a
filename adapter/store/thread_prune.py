"""Owns what shortens threads: reducing one to its latest checkpoint, and the end of its lifetime.

Threads that something runs or waits on are left alone; the next time is soon enough.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.errors import LockNotAvailable, SerializationFailure
from psycopg.rows import DictRow

from adapter.errors import Invalid
from adapter.store.pool import Connection, Pool, execute, fetch_all, fetch_one, store_errors
from adapter.store.sql import query


async def keep_latest(pool: Pool, thread_id: str, *, expired: bool = False) -> bool:
    """Deletes all but the latest checkpoint of a thread and of its open and its persistent subgraphs.

    Turns that went through the deleted ones cannot be done again by a Reset any more.

    Args:
        pool: PostgreSQL.
        thread_id: the thread.
        expired: only if its lifetime is over; it is due again after its next change.

    Returns:
        False when the thread does not exist, is busy, or is not due.

    Raises:
        Invalid: a channel of its state is rebuilt from the whole history; not retryable.
    """
    try:
        async with _quiet(pool, thread_id, expired=expired, one_snapshot=True) as conn:
            if conn is None:
                return False
            try:
                await AsyncPostgresSaver(cast("Any", conn)).aprune([thread_id], strategy="keep_latest")
            except NotImplementedError as exc:
                raise Invalid(str(exc)) from None
            await conn.execute(query("detach_turns"), {"thread_id": thread_id})
            await conn.execute(query("mark_reduced"), {"thread_id": thread_id})
    except _Changes:
        return False
    return True


async def delete_expired(pool: Pool, thread_id: str) -> bool:
    """Deletes a thread with everything of it if its lifetime is over; returns False when it is not, or it is busy."""
    try:
        async with _quiet(pool, thread_id, expired=True, one_snapshot=False) as conn:
            if conn is None:
                return False
            await conn.execute(query("delete_thread"), {"thread_id": thread_id})
            await conn.execute(query("notify_thread"), {"thread_id": thread_id})
            # After the fence went, as in `requests.delete_thread`.
            await AsyncPostgresSaver(cast("Any", conn)).adelete_thread(thread_id)
    except _Changes:
        return False
    return True


async def expired(pool: Pool, *, limit: int, skipped: Sequence[str] = ()) -> list[DictRow]:
    """Returns threads whose lifetime is over, with their strategy, without those that were tried already."""
    return await fetch_all(pool, "expired_threads", limit=limit, skipped=list(skipped))


async def mark_reduced(pool: Pool, thread_id: str) -> None:
    """Notes that a thread is as short as it can be until its next change."""
    await execute(pool, "mark_reduced", thread_id=thread_id)


async def delete_expired_items(pool: Pool) -> int:
    """Deletes what the long-term store holds past its time; returns how many items."""
    row = await fetch_one(pool, "delete_expired_items")
    assert row is not None
    return int(row["items"])


@asynccontextmanager
async def _quiet(
    pool: Pool, thread_id: str, *, expired: bool, one_snapshot: bool
) -> AsyncGenerator[Connection | None]:
    """Yields a transaction that holds a thread which nothing runs on, or None.

    LangGraph's pruning needs `one_snapshot`. A deletion must not have one: it goes on until nothing is left.

    Raises:
        _Changes: somebody else changes the thread.
    """
    async with store_errors(), pool.connection() as conn:
        try:
            async with conn.transaction():
                if one_snapshot:
                    await conn.execute(query("one_snapshot"))
                params = {"thread_id": thread_id, "expired": expired}
                held = await (await conn.execute(query("lock_quiet_thread"), params)).fetchone()
                if held is not None:
                    await conn.execute(query("lock_fence_now"), {"thread_id": thread_id})
                yield None if held is None else conn
        except (LockNotAvailable, SerializationFailure):
            raise _Changes from None


class _Changes(Exception):
    """A thread is not as quiet as it looked."""
