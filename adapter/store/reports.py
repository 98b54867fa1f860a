"""Owns the reading of what operators look for: work that was abandoned, effects whose outcome nobody knows."""

from __future__ import annotations

from psycopg.rows import DictRow

from adapter.store.only import Only
from adapter.store.pool import Pool, fetch_all


async def abandoned(pool: Pool, *, only: Only, limit: int, offset: int = 0) -> list[DictRow]:
    """Returns threads whose last turn failed or was cancelled and that nobody went on with, the newest first.

    A turn that was cancelled before it began is not one: nothing happened in it. Nor is a thread that waits for a
    person, or whose state somebody has edited until nothing is left to run.

    Returns:
        Rows of thread, turn, status, error's class, when the turn ended, and `effects`: those of the turn and of the
        turns that it went on with, as a list of objects.
    """
    return await fetch_all(pool, "abandoned_threads", limit=limit, offset=offset, only=only.sql())


async def effects(
    pool: Pool, *, thread_id: str | None, unsettled: bool = False, limit: int | None = None
) -> list[DictRow]:
    """Returns journaled effects, the newest first.

    Args:
        pool: PostgreSQL.
        thread_id: of this thread; None is all threads.
        unsettled: only those whose outcome nobody knows; the column `unsettled` says why.
        limit: at most so many; None is all.
    """
    return await fetch_all(pool, "list_effects", thread_id=thread_id, unsettled=unsettled, limit=limit)
