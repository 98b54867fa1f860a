"""Rows of threads and turns, and claims, without a graph that runs."""

from __future__ import annotations

import uuid
from typing import Any

from adapter.store import requests, turns
from adapter.store.claims import Claim, take
from adapter.store.pool import Connection, Pool
from adapter.store.requests import NewTurn
from adapter.store.sql import query
from adapter.store.turns import Start, TurnRow


async def record(
    pool: Pool, thread: str | None = None, request: dict[str, Any] | None = None
) -> tuple[str, str]:
    """Records a turn, on a thread of its own unless one is given; returns the ids of both."""
    if thread is None:
        thread = str(uuid.uuid4())
        await requests.create_thread(pool, thread, {})
    new = NewTurn(thread, "graph", str(uuid.uuid4()), request or {}, {}, {}, "enqueue", None, False)
    return thread, str((await requests.record_turn(pool, new)).row["turn_id"])


async def claim(pool: Pool, thread: str, scope: str = "", token: int = 1, attempt: int = 1) -> Claim:
    """Claims a scope of a thread."""
    it = Claim(thread, scope, token, attempt)
    async with pool.connection() as conn:
        await take(conn, it, pool)
    return it


async def load(conn: Connection, turn_id: str) -> TurnRow:
    """Returns a turn as an attempt reads it."""
    row = await (await conn.execute(query("load_turn"), {"turn_id": turn_id, "whole": False})).fetchone()
    assert row is not None
    return turns.row_of(row)


async def start(conn: Connection, turn_id: str) -> None:
    """Stores that a turn begins anew, as its first attempt does."""
    with_ = Start(turn_id, None, 25, str(uuid.uuid4()), str(uuid.uuid4()), None, False)
    await turns.start(conn, await load(conn, turn_id), with_)
