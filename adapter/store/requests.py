"""Owns thread and turn rows as the HTTP side records and reads them; `adapter/store/stops.py` is about stopping turns.

Recording a turn is one transaction under its thread's row lock: the order of acceptance, the refusal of a busy thread
and the deduplication of a repeated request have one answer (I3).
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import orjson
import psycopg
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from adapter.errors import AssistantChanged, Conflict, Forbidden, NotFound, TooMany
from adapter.store.only import EVERYTHING, Only
from adapter.store.pool import Connection, Pool, execute, fetch_all, fetch_one, one_trip, store_errors
from adapter.store.sql import query

BUSY = "Thread is already running a task. Wait for it to finish or choose a different multitask strategy."


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn to record.

    Attributes:
        identity: what stands for the graph when a repeated request is compared; None is the graph's id.
        asked: the request as the client made it, without what an assistant adds; None is all of `request`.
        idempotency_key: the client's key, or None for a turn of its own.
        refuse_busy: whether a thread with an open turn refuses it (strategy "reject").
        queued_turns: how many turns may wait on the thread, this one included; None is any number.
        user: who it is run for, as JSON; not a part of what makes two requests the same.
        only: threads that whoever asks may run turns on.
        delay: seconds until it may begin, behind what its thread accepts meanwhile.
        makes: metadata that the thread is made with unless it exists, whoever's it is; None makes none.
        assistant_as_of: when its assistant was last changed, for one that was read earlier; None does not ask.
    """

    thread_id: str
    graph_id: str
    assistant_id: str
    request: Mapping[str, Any]
    metadata: Mapping[str, Any]
    config: Mapping[str, Any]
    strategy: str
    idempotency_key: str | None
    refuse_busy: bool
    queued_turns: int | None = None
    identity: str | None = None
    asked: Mapping[str, Any] | None = None
    user: Mapping[str, Any] | None = None
    only: Only = EVERYTHING
    delay: float = 0
    makes: Mapping[str, Any] | None = None
    assistant_as_of: datetime | None = None


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long a thread lives after its last change.

    Attributes:
        minutes: how long.
        strategy: what happens then: "delete", or "keep_latest" to keep its latest checkpoint only.
    """

    minutes: float
    strategy: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded turn.

    Attributes:
        row: the turn's row.
        new: False when the same request was recorded before.
    """

    row: DictRow
    new: bool


def turn_id_of(thread_id: str, idempotency_key: str | None) -> str:
    """Returns the turn's id: made of the client's key within its thread, or a fresh time-ordered one."""
    if idempotency_key is None:
        return str(_uuid7())
    return str(uuid.uuid5(uuid.UUID(thread_id), idempotency_key))


def _uuid7() -> uuid.UUID:
    import time

    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds << 80) | uuid.uuid4().int & ((1 << 80) - 1)
    value &= ~(0xF000 << 64) & ~(0xC000 << 48)
    return uuid.UUID(int=value | (0x7000 << 64) | (0x8000 << 48))


def new_id() -> str:
    """Returns a fresh id, a UUID whose order is that of time."""
    return str(_uuid7())


async def record_turn(pool: Pool, new: NewTurn) -> Recorded:
    """Records a turn, or finds the one that the same request recorded before.

    Raises:
        NotFound: the thread does not exist.
        Conflict: the thread is busy and the request refuses to wait, or the key was used for another request.
        TooMany: as many turns wait on the thread as may.
        AssistantChanged: retryable with the assistant as it is now.
    """
    turn_id = turn_id_of(new.thread_id, new.idempotency_key)
    digest = _digest(new)
    params = {
        "thread_id": new.thread_id,
        "turn_id": turn_id,
        "graph_id": new.graph_id,
        "assistant_id": new.assistant_id,
        "request": Jsonb(dict(new.request) if new.user is None else {**new.request, "user": dict(new.user)}),
        "request_hash": digest,
        "metadata": Jsonb(dict(new.metadata)),
        "thread_metadata": Jsonb({"graph_id": new.graph_id, "assistant_id": new.assistant_id}),
        "config": Jsonb(dict(new.config)),
        "strategy": new.strategy,
        "refuse_busy": new.refuse_busy,
        "queued_turns": new.queued_turns,
        "only": new.only.sql(),
        "delay": new.delay,
        "assistant_as_of": new.assistant_as_of,
    }
    # Nearly every request is new: all of it is sent at once.
    async with one_trip(pool) as conn:
        if new.makes is not None:
            made = {"thread_id": new.thread_id, "metadata": Jsonb(dict(new.makes)), **_lifetime(None)}
            await conn.execute(query("create_thread"), made)
        recorded = await _record(conn, params)
    row = await recorded.fetchone()
    if row is not None:
        return Recorded(row, new=True)
    async with store_errors(), pool.connection() as conn, conn.transaction():
        await conn.execute(query("hold_thread"), {"thread_id": new.thread_id})
        seen = {"thread_ids": [new.thread_id], "only": new.only.sql()}
        if await (await conn.execute(query("visible_threads"), seen)).fetchone() is None:
            raise NotFound(f"Thread with ID {new.thread_id} not found")
        row = await (await conn.execute(query("get_turn"), {"turn_id": turn_id})).fetchone()
        if row is None:
            # Its thread may have been made since: deleted before, and created again.
            row = await (await _record(conn, params)).fetchone()
            if row is not None:
                return Recorded(row, new=True)
            await _check_assistant(conn, new)
            if new.refuse_busy:
                raise Conflict(BUSY)
            raise TooMany(_full(new.thread_id, new.queued_turns))
        if bytes(row["request_hash"]) != digest:
            await _check_assistant(conn, new)
            raise Conflict("This Idempotency-Key was used on this thread for a request with another body.")
    return Recorded(row, new=False)


async def _check_assistant(conn: Connection, new: NewTurn) -> None:
    if new.assistant_as_of is None:
        return
    cursor = await conn.execute(query("get_assistant"), {"assistant_id": new.assistant_id})
    now = await cursor.fetchone()
    if now is None or now["updated_at"] != new.assistant_as_of:
        raise AssistantChanged(new.assistant_id)


async def _record(conn: Connection, params: Mapping[str, Any]) -> psycopg.AsyncCursor[DictRow]:
    await conn.execute(query("hold_thread"), {"thread_id": params["thread_id"]})
    return await conn.execute(query("record_turn"), params)


def _digest(new: NewTurn) -> bytes:
    """Returns what a repeated request is recognised by, whatever became of the assistant meanwhile."""
    said = [new.identity or new.graph_id, new.request if new.asked is None else new.asked]
    return hashlib.blake2b(orjson.dumps(said, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


def _full(thread_id: str, limit: int | None) -> str:
    return (
        f"Thread {thread_id} has {limit} turn{'s' if limit != 1 else ''} waiting, as many as it may. Wait for them, "
        'cancel them, or choose the multitask strategy "interrupt".'
    )


async def create_thread(
    pool: Pool,
    thread_id: str,
    metadata: Mapping[str, Any],
    *,
    if_exists: str = "raise",
    lifetime: Lifetime | None = None,
    only: Only = EVERYTHING,
) -> DictRow:
    """Creates a thread.

    Args:
        pool: PostgreSQL.
        thread_id: its id.
        metadata: its metadata.
        if_exists: "raise", or "do_nothing" to return the existing one unchanged.
        lifetime: None is for ever.
        only: existing threads that whoever asks may see.

    Raises:
        Conflict: it exists.
    """
    row = await fetch_one(
        pool, "create_thread", thread_id=thread_id, metadata=Jsonb(dict(metadata)), **_lifetime(lifetime)
    )
    if row is not None:
        return row
    if if_exists == "do_nothing":
        existing = await get_thread(pool, thread_id)
        if only.admits(existing["metadata"]):
            return existing
    raise Conflict(f"Thread with ID {thread_id} already exists")


def _lifetime(given: Lifetime | None) -> dict[str, Any]:
    return {
        "ttl_minutes": None if given is None else given.minutes,
        "ttl_strategy": None if given is None else given.strategy,
    }


async def get_thread(pool: Pool, thread_id: str) -> DictRow:
    """Returns a thread's row.

    Raises:
        NotFound: it does not exist.
    """
    row = await fetch_one(pool, "get_thread", thread_id=thread_id)
    if row is None:
        raise NotFound(f"Thread with ID {thread_id} not found")
    return row


async def visible_threads(pool: Pool, thread_ids: Sequence[str], only: Only) -> set[str]:
    """Returns those of the threads that exist and that whoever asks may see."""
    rows = await fetch_all(pool, "visible_threads", thread_ids=list(thread_ids), only=only.sql())
    return {str(row["thread_id"]) for row in rows}


async def turn_is_visible(pool: Pool, turn_id: str, only: Only) -> bool:
    """Whether a turn exists, on a thread that whoever asks may see."""
    return await fetch_one(pool, "visible_turn", turn_id=turn_id, only=only.sql()) is not None


async def list_threads(
    pool: Pool, *, metadata: Mapping[str, Any], status: str | None, limit: int, offset: int, only: Only
) -> list[DictRow]:
    """Returns threads whose metadata contains `metadata`, the last updated first."""
    return await fetch_all(
        pool,
        "list_threads",
        metadata=Jsonb(dict(metadata)),
        status=status,
        limit=limit,
        offset=offset,
        only=only.sql(),
    )


async def search_threads(
    pool: Pool,
    *,
    metadata: Mapping[str, Any],
    status: str | None,
    ids: Sequence[str] | None,
    values: Mapping[str, Any],
    sort: str,
    ascending: bool,
    limit: int,
    offset: int,
    only: Only,
) -> list[DictRow]:
    """Returns threads in any order; `list_threads` is the fast way to the usual one.

    With `values`, threads whose state cannot contain them are left out, and those that remain may or may not.
    """
    return await fetch_all(
        pool,
        "search_threads",
        metadata=Jsonb(dict(metadata)),
        status=status,
        ids=None if ids is None else list(ids),
        values=Jsonb(dict(values)),
        sort=sort,
        ascending=ascending,
        limit=limit,
        offset=offset,
        only=only.sql(),
    )


async def count_threads(pool: Pool, *, metadata: Mapping[str, Any], status: str | None, only: Only) -> int:
    """Returns how many threads have metadata that contains `metadata`."""
    row = await fetch_one(
        pool, "count_threads", metadata=Jsonb(dict(metadata)), status=status, only=only.sql()
    )
    assert row is not None
    return int(row["threads"])


async def delete_thread(pool: Pool, thread_id: str) -> None:
    """Deletes a thread with everything of it: turns, events, effects, fences, checkpoints.

    An attempt that still runs finds its claim gone and writes nothing more (I5).

    Raises:
        NotFound: it does not exist.
    """
    async with store_errors(), pool.connection() as conn, conn.transaction():
        params = {"thread_id": thread_id}
        await conn.execute(query("lock_fence"), params)
        open_turns = await (await conn.execute(query("open_turns"), params)).fetchall()
        row = await (await conn.execute(query("delete_thread"), params)).fetchone()
        if row is None:
            raise NotFound(f"Thread with ID {thread_id} not found")
        await conn.execute(query("notify_thread"), params)
        for turn in open_turns:
            await conn.execute(query("notify_turn"), {"turn_id": turn["turn_id"]})
        # After the fence went: a writer that held its claim until now has committed, a later one is refused.
        await AsyncPostgresSaver(cast("Any", conn)).adelete_thread(thread_id)


async def temporary_threads(pool: Pool, *, age_seconds: float, limit: int) -> list[str]:
    """Returns threads of stateless runs that ended that long ago."""
    rows = await fetch_all(pool, "temporary_threads", age_seconds=age_seconds, limit=limit)
    return [str(row["thread_id"]) for row in rows]


async def update_thread(
    pool: Pool, thread_id: str, metadata: Mapping[str, Any], only: Only, lifetime: Lifetime | None = None
) -> DictRow:
    """Merges metadata into a thread's, and gives it a lifetime unless that is None.

    Raises:
        NotFound: it does not exist, or whoever asks may not see it.
        Forbidden: they could not see it any more afterwards.
    """
    for _ in range(2):  # it may be made just after it was not found
        row = await fetch_one(
            pool,
            "update_thread_metadata",
            thread_id=thread_id,
            metadata=Jsonb(dict(metadata)),
            only=only.sql(),
            **_lifetime(lifetime),
        )
        if row is not None:
            return row
        if not await visible_threads(pool, [thread_id], only):
            raise NotFound(f"Thread with ID {thread_id} not found")
    raise Forbidden("Forbidden")


async def get_turn(pool: Pool, thread_id: str, turn_id: str) -> DictRow:
    """Returns a turn's row.

    Raises:
        NotFound: the thread has no such turn.
    """
    row = await fetch_one(pool, "get_thread_turn", thread_id=thread_id, turn_id=turn_id)
    if row is None:
        raise NotFound("Run not found")
    return row


async def list_turns(
    pool: Pool, thread_id: str, *, status: str | None, limit: int, offset: int
) -> list[DictRow]:
    """Returns a thread's turns, the newest first."""
    return await fetch_all(pool, "list_turns", thread_id=thread_id, status=status, limit=limit, offset=offset)


async def delete_turn(pool: Pool, thread_id: str, turn_id: str) -> None:
    """Deletes a turn with its events; what it did to its thread's state stays.

    Raises:
        NotFound: the thread has no such turn.
    """
    if await fetch_one(pool, "delete_turn", thread_id=thread_id, turn_id=turn_id) is None:
        raise NotFound("Run not found")


async def notify_thread(pool: Pool, thread_id: str) -> None:
    """Wakes whoever watches the thread's progress."""
    await execute(pool, "notify_thread", thread_id=thread_id)


async def list_effects(pool: Pool, thread_id: str, *, unsettled: bool = False) -> list[DictRow]:
    """Returns the journal of a thread's effects, the oldest first; or only those whose outcome nobody knows."""
    rows = await fetch_all(pool, "list_effects", thread_id=thread_id, unsettled=unsettled, limit=None)
    return rows[::-1]
