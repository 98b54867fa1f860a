"""Owns the copying of a thread: its row and what LangGraph's tables hold of it, under another id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from adapter.store.pool import Pool, fetch_one


async def copy(
    pool: Pool, thread_id: str, copied: str, metadata: Mapping[str, Any] | None = None
) -> DictRow | None:
    """Copies a thread as it is at this moment, in one transaction; its turns, events and effects stay behind.

    The copy is never busy: of a turn under way it has the state so far. Effects of its turns have keys of their own.

    Args:
        pool: PostgreSQL.
        thread_id: the original.
        copied: the copy's id, a new one.
        metadata: of the copy; None is the original's.

    Returns:
        The copy's row; None when there is no such thread.
    """
    # LangGraph's tables have the id as text.
    ids = {"original": thread_id, "copy": copied, "from": thread_id, "to": copied}
    own = None if metadata is None else Jsonb(dict(metadata))
    return await fetch_one(pool, "copy_thread", **ids, metadata=own)
