"""Owns turn and thread rows as activities change them: load, start, finish, fail.

Who moves a row and when stands in the migration's comments; every transition is conditional in its WHERE.
The HTTP side reads and records rows through `adapter/store/requests.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from adapter.errors import NotFound, Superseded
from adapter.store.pool import Connection, Pool, store_errors
from adapter.store.sql import query
from adapter.writer import Claim, take

FINAL = frozenset({"success", "error", "interrupted", "timeout"})


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn as its activities see it.

    Attributes:
        request: the body of the HTTP request; its `input` is left out once it was applied.
        origin: the turn that idempotency keys are derived from; None before begin.
        applied: whether the input, or the command, is in the thread's checkpoints.
        resume: interrupt id to answer, made of the request's `command.resume` by begin.
        stop: last superstep of the root graph this turn may run; None before begin.
        held: tasks that stopped at a static breakpoint in this turn; '' is the root graph.
        thread_origin: the origin of the thread's last begun turn.
        previous_status: how the thread's turn before this one ended.
    """

    turn_id: str
    thread_id: str
    seq: int
    graph_id: str
    assistant_id: str
    status: str
    request: Mapping[str, Any]
    metadata: Mapping[str, Any]
    origin: str | None
    applied: bool
    resume: Mapping[str, Any] | None
    stop: int | None
    error: Mapping[str, Any] | None
    held: frozenset[str]
    thread_origin: str | None
    previous_status: str | None


async def claim_and_load(pool: Pool, claim: Claim, turn_id: str) -> TurnRow:
    """Takes the claim and loads the turn, in one transaction.

    Raises:
        StaleAttempt: a newer attempt holds the claim; not retryable.
        NotFound: the turn was deleted; not retryable.
        Superseded: it ended and later turns ran; not retryable.
    """
    async with store_errors(), pool.connection() as conn, conn.transaction():
        row = await _load(conn, turn_id)
        if row["superseded"]:
            # Before the claim: the thread may belong to a later turn that runs.
            raise Superseded(
                f"turn {turn_id} ended and later turns of thread {row['thread_id']} built on it; to do it again on "
                "purpose, start a turn from its checkpoint"
            )
        await take(conn, claim, pool)
        await conn.execute(query("notify_thread"), {"thread_id": claim.thread_id})
        # Again: the claim may have waited for an older attempt's transaction, such as the one that applied the input.
        return _turn(await _load(conn, turn_id))


async def _load(conn: Connection, turn_id: str) -> DictRow:
    row = await (await conn.execute(query("load_turn"), {"turn_id": turn_id})).fetchone()
    if row is None:
        raise NotFound(f"turn {turn_id} does not exist any more")
    return row


def _turn(row: Mapping[str, Any]) -> TurnRow:
    return TurnRow(
        turn_id=str(row["turn_id"]),
        thread_id=str(row["thread_id"]),
        seq=row["seq"],
        graph_id=row["graph_id"],
        assistant_id=str(row["assistant_id"]),
        status=row["status"],
        request=row["request"],
        metadata=row["metadata"],
        origin=None if row["origin"] is None else str(row["origin"]),
        applied=row["applied"],
        resume=row["resume"],
        stop=row["stop"],
        error=row["error"],
        held=frozenset(row["held"]),
        thread_origin=None if row["thread_origin"] is None else str(row["thread_origin"]),
        previous_status=row["previous_status"],
    )


async def start(
    conn: Connection, turn: TurnRow, *, origin: str, resume: Mapping[str, Any] | None, stop: int
) -> None:
    """Pending ► running, with what every later step of the turn needs; in the caller's transaction."""
    await conn.execute(
        query("start_turn"),
        {
            "turn_id": turn.turn_id,
            "origin": origin,
            "resume": None if resume is None else Jsonb(dict(resume)),
            "stop": stop,
        },
    )
    await conn.execute(query("set_thread_origin"), {"thread_id": turn.thread_id, "origin": origin})
    if origin == turn.turn_id:
        await conn.execute(query("drop_node_errors"), {"thread_id": turn.thread_id})


async def revive(conn: Connection, turn: TurnRow) -> None:
    """Error ► running: the failed node is tried again; in the caller's transaction."""
    await conn.execute(query("revive_turn"), {"turn_id": turn.turn_id})


async def hold(conn: Connection, turn_id: str, task_id: str) -> None:
    """Notes that a task stopped at a static breakpoint; in the caller's transaction."""
    await conn.execute(query("hold_task"), {"turn_id": turn_id, "task_id": task_id})


async def mark_applied(conn: Connection, turn_id: str) -> None:
    """Notes that the input is in the checkpoints; in the transaction that puts it there."""
    await conn.execute(query("mark_applied"), {"turn_id": turn_id})


async def set_error(conn: Connection, turn_id: str, error: Mapping[str, str]) -> None:
    """Stores what a node raised, for the event that `finish` will show; in the caller's transaction."""
    await conn.execute(query("set_turn_error"), {"turn_id": turn_id, "error": Jsonb(dict(error))})


async def finish(
    conn: Connection,
    turn_id: str,
    *,
    status: str,
    thread_status: str,
    interrupts: Mapping[str, Any] | None = None,
    error: Mapping[str, Any] | None = None,
) -> None:
    """Gives a turn its final status, and its thread the status that follows; in the caller's transaction.

    Does nothing to a turn that is final already.
    """
    await conn.execute(query("hold_thread_of"), {"turn_id": turn_id})
    await conn.execute(
        query("finish_turn"),
        {
            "turn_id": turn_id,
            "status": status,
            "thread_status": thread_status,
            "interrupts": Jsonb(dict(interrupts or {})),
            "error": None if error is None else Jsonb(dict(error)),
        },
    )
    await conn.execute(query("notify_turn"), {"turn_id": turn_id})
