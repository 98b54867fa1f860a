"""Owns the copying of a thread: its row and what LangGraph's tables hold of it, under another id."""

from __future__ import annotations

from psycopg.rows import DictRow

from adapter.store.pool import Pool, fetch_one
from adapter.store.requests import new_id


async def copy(pool: Pool, thread_id: str) -> DictRow | None:
    """Copies a thread as it is at this moment, in one transaction; its turns, events and effects stay behind.

    The copy is never busy: of a turn under way it has the state so far. Effects of its turns have keys of their own.

    Returns:
        The copy's row; None when there is no such thread.
    """
    copied = new_id()
    # LangGraph's tables have the id as text.
    ids = {"original": thread_id, "copy": copied, "from": thread_id, "to": copied}
    return await fetch_one(pool, "copy_thread", **ids)
