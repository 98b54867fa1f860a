"""Owns the stopping of turns from outside of their runs: those that wait, those whose run is gone, and the notices.

A turn that runs is stopped by its workflow, which stores that through `adapter/store/turns.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from psycopg.rows import DictRow

from adapter.store import turns
from adapter.store.only import Only
from adapter.store.pool import Pool, execute, fetch_all, fetch_one, store_errors
from adapter.store.sql import query


async def cancel_pending(pool: Pool, turn_id: str) -> bool:
    """Pending ► interrupted. Returns False when the turn has begun, or ended.

    Its run, when it comes, finds the turn ended and does nothing.
    """
    params = {"turn_id": turn_id}
    async with store_errors(), pool.connection() as conn, conn.transaction(), conn.pipeline():
        await conn.execute(query("hold_thread_of"), params)
        cursor = await conn.execute(query("cancel_pending"), params)
        return await cursor.fetchone() is not None


async def discard_pending(pool: Pool, turn_id: str) -> bool:
    """Deletes a turn that waits, as if it had never been sent. Returns False when it has begun, or ended."""
    async with store_errors(), pool.connection() as conn, conn.transaction():
        return await turns.delete(conn, turn_id, ("pending",))


async def cancel_waiting(pool: Pool, thread_id: str, seq: int, *, roll_back: bool) -> None:
    """Pending ► interrupted, or deleted, for the turns of a thread that wait before turn `seq`, which cuts in."""
    name = "discard_waiting" if roll_back else "cancel_waiting"
    await fetch_all(pool, name, thread_id=thread_id, seq=seq)


async def turns_to_cancel(
    pool: Pool,
    *,
    statuses: Sequence[str],
    thread_id: str | None,
    turn_ids: Sequence[str] | None,
    after: str,
    limit: int,
    only: Only,
) -> list[DictRow]:
    """Returns `turn_id` and `thread_id` of open turns, in the order of their ids, after one.

    Args:
        pool: PostgreSQL.
        statuses: "pending", "running", or both.
        thread_id: None is any thread.
        turn_ids: None is all of them.
        after: the last id of the page before.
        limit: of a page.
        only: threads that whoever asks may see.
    """
    return await fetch_all(
        pool,
        "turns_to_cancel",
        statuses=list(statuses),
        thread_id=thread_id,
        turn_ids=None if turn_ids is None else list(turn_ids),
        after=after,
        limit=limit,
        only=only.sql(),
    )


async def overtaken(pool: Pool, turn_id: str) -> bool:
    """Whether a turn is running by its row only, since a later turn of its thread has begun."""
    return await fetch_one(pool, "overtaken", turn_id=turn_id) is not None


async def abandon(pool: Pool, thread_id: str, turn_id: str) -> None:
    """Running ► interrupted, for a turn whose run is gone, as when somebody terminated its workflow.

    What may be left of its attempts writes nothing more (I5).
    """
    async with store_errors(), pool.connection() as conn, conn.transaction():
        await conn.execute(query("lock_fence"), {"thread_id": thread_id})
        await conn.execute(query("lock_thread"), {"thread_id": thread_id})
        await conn.execute(query("drop_claims"), {"thread_id": thread_id, "turn_id": turn_id})
        await turns.finish(conn, turn_id, status="interrupted", thread_status="interrupted")


async def notify_cancel(pool: Pool, turn_id: str) -> None:
    """Makes the turn's running attempts ask Temporal at once whether they are cancelled."""
    await execute(pool, "notify_cancel", turn_id=turn_id)


async def notify_cut_in(pool: Pool, thread_id: str, seq: int) -> None:
    """As `notify_cancel`, for the turns that turn `seq` cut in on."""
    for turn in await fetch_all(pool, "open_turns", thread_id=thread_id):
        if turn["seq"] < seq:
            await notify_cancel(pool, str(turn["turn_id"]))
