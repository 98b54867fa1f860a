"""Owns turn and thread rows as activities change them: load, start, finish, fail.

Who moves a row and when stands in the migrations' comments; every transition is conditional in its WHERE.
The HTTP side reads and records rows through `adapter/store/requests.py`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from adapter.errors import EarlierFirst, NotFound, Superseded, Undone
from adapter.store.claims import Claim, claim_params, stale
from adapter.store.pool import Connection, Pool, ending_blockers, fetch_one, one_trip, store_errors
from adapter.store.sql import query

# As the Agent Server's threads tell of it.
_ROLLED_BACK = {"error": "UserRollback", "message": "User rolled back the run"}

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
        run_id: Temporal's run that runs the turn, None before begin.
        begun_in: the run it began in; a run that Reset makes keeps this as its original.
        base: the thread's checkpoint before the turn, None for a thread without any.
        undone: whether the turn's effects were compensated.
        head: the thread's newest checkpoint, None for a thread without any.
        head_step: the superstep of the thread's newest checkpoint, None for a thread without any.
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
    run_id: str | None
    begun_in: str | None
    base: str | None
    undone: bool
    head: str | None
    head_step: int | None


async def claim_and_load(
    pool: Pool, claim: Claim, turn_id: str, *, whole: bool = False, first: bool = False
) -> TurnRow:
    """Takes the claim and loads the turn, in one transaction.

    Args:
        pool: PostgreSQL.
        claim: the attempt's.
        turn_id: the turn.
        whole: whether the input is wanted even if it was applied.
        first: whether a turn that was accepted earlier goes first (I3).

    Raises:
        EarlierFirst: there is such a turn.
        StaleAttempt: a newer attempt holds the claim; not retryable.
        NotFound: the turn was deleted; not retryable.
        Superseded: it ended and later turns ran; not retryable.
        Undone: it failed and its effects were compensated; not retryable.
    """
    of_turn = {"turn_id": turn_id}
    # All of it is sent at once; what does not hold takes all of it back.
    async with one_trip(pool) as conn:
        with ending_blockers(pool, conn):
            older = await conn.execute(query("older_open"), of_turn) if first else None
            claimed = await conn.execute(query("claim"), claim_params(claim, turn_id))
            # After it: it may have waited for an older attempt's transaction, such as what applied the input.
            loaded = await conn.execute(query("load_turn"), {**of_turn, "whole": whole})
            if older is not None and (row := await older.fetchone()) is not None:
                raise EarlierFirst(str(row["turn_id"]), row["seq"], row["hook"])
            row = _may_go_on(await loaded.fetchone(), turn_id)
            if await claimed.fetchone() is None:
                raise await stale(conn, claim)
            return row_of(row)


def _may_go_on(row: DictRow | None, turn_id: str) -> DictRow:
    if row is None:
        raise NotFound(f"turn {turn_id} does not exist any more")
    if row["superseded"]:
        raise Superseded(
            f"turn {turn_id} ended, and thread {row['thread_id']} went on or was pruned since; to do it again on "
            "purpose, start a turn from its checkpoint"
        )
    if row["undone"] and row["status"] not in ("pending", "running"):
        raise Undone(
            f"turn {turn_id} failed and its effects were compensated; it cannot be tried again: start a new turn"
        )
    return row


def row_of(row: Mapping[str, Any]) -> TurnRow:
    """Returns what statement `load_turn` found."""
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
        run_id=row["run_id"],
        begun_in=row["begun_in"],
        base=row["base"],
        undone=row["undone"],
        head=row["head"],
        head_step=row["head_step"],
    )


@dataclass(frozen=True, slots=True)
class Start:
    """What begin stores for every later step of the turn.

    Attributes:
        origin: the turn that idempotency keys are derived from.
        resume: interrupt id to answer.
        stop: last superstep of the root graph this turn may run.
        run_id: Temporal's run.
        begun_in: its original run, which differs in one that Reset made.
        base: the thread's checkpoint before the turn.
        over: whether a run that Reset made begins it over.
    """

    origin: str
    resume: Mapping[str, Any] | None
    stop: int
    run_id: str
    begun_in: str
    base: str | None
    over: bool


async def start(conn: Connection, turn: TurnRow, with_: Start) -> None:
    """Pending ► running; in the caller's transaction.

    Raises:
        NotFound: it was cancelled or discarded since it was loaded; not retryable.
    """
    await hold_thread(conn, turn.turn_id)
    await conn.execute(
        query("start_turn"),
        {
            "turn_id": turn.turn_id,
            "thread": turn.thread_id,
            "thread_id": turn.thread_id,
            "origin": with_.origin,
            "resume": None if with_.resume is None else Jsonb(dict(with_.resume)),
            "stop": with_.stop,
            "run_id": with_.run_id,
            "begun_in": with_.begun_in,
            "base": with_.base,
            "prior_origin": turn.thread_origin,
            "continues": with_.origin != turn.turn_id,
            "over": with_.over,
        },
    )


async def adopt(conn: Connection, turn: TurnRow, run_id: str, *, rewound: bool) -> None:
    """Notes that another run has the turn now, and that it runs again; in the caller's transaction.

    Args:
        conn: in a transaction.
        turn: the turn.
        run_id: Temporal's run, made by Reset or the next one of a long turn.
        rewound: whether it goes on from an earlier checkpoint.
    """
    await hold_thread(conn, turn.turn_id)
    await conn.execute(query("adopt_turn"), {"turn_id": turn.turn_id, "run_id": run_id})
    if rewound:
        await conn.execute(query("rewind_turn"), {"turn_id": turn.turn_id})


async def head_checkpoint(pool: Pool, thread_id: str) -> str | None:
    """Returns the id of the thread's latest root checkpoint."""
    row = await fetch_one(pool, "head_checkpoint", thread_id=thread_id)
    return None if row is None else row["id"]


async def first_checkpoint(pool: Pool, thread_id: str) -> str | None:
    """Returns the id of the thread's first root checkpoint, which holds its first turn's input."""
    row = await fetch_one(pool, "first_checkpoint", thread_id=thread_id)
    return None if row is None else row["checkpoint_id"]


async def hold_thread(conn: Connection, turn_id: str) -> None:
    """Locks a turn's thread for a change of both, in the caller's transaction, before anything locks the turn.

    Whoever changes both takes the thread first, and the fence before it (see `lock_fence`), or two of them would wait
    for each other.
    """
    await conn.execute(query("hold_thread_of"), {"turn_id": turn_id})


async def is_open(conn: Connection, turn_id: str) -> bool:
    """Whether the turn has not ended; it cannot end before the caller's transaction has."""
    return await (await conn.execute(query("hold_open_turn"), {"turn_id": turn_id})).fetchone() is not None


async def roll_back(conn: Connection, turn: TurnRow) -> None:
    """Makes an open turn undone: its checkpoints, its row and its events go, its thread is as before.

    In the caller's transaction, after the claim. Does nothing to a turn that has ended. What its effects did to the
    world, and what its nodes wrote to the long-term store, stays.
    """
    await hold_thread(conn, turn.turn_id)
    if not await is_open(conn, turn.turn_id):
        return
    if turn.origin is not None:
        await conn.execute(query("roll_back_checkpoints"), {"thread": turn.thread_id, "turn": turn.turn_id})
        await restore_base(conn, turn)
    await delete(conn, turn.turn_id, ("pending", "running"))


async def fall_due(pool: Pool, thread_id: str, turn_id: str) -> DictRow | None:
    """Gives a turn that waited for a time its place behind all that its thread has accepted meanwhile.

    Returns:
        `turn_id`, `seq` and `hook` of the turn, also when it has its place already; None when it was cancelled, was
        deleted, or has begun.
    """
    async with store_errors(), pool.connection() as conn, conn.transaction():
        await conn.execute(query("hold_thread"), {"thread_id": thread_id})
        return await (await conn.execute(query("fall_due"), {"turn_id": turn_id})).fetchone()


async def restore_base(conn: Connection, turn: TurnRow) -> None:
    """Puts back the pending writes of the checkpoint that a turn started from; in the caller's transaction."""
    continued = turn.origin != turn.turn_id
    await conn.execute(
        query("drop_base_writes"), {"thread": turn.thread_id, "base": turn.base, "continued": continued}
    )
    ids = {"thread": turn.thread_id, "turn": turn.turn_id}
    await conn.execute(query("restore_base_writes"), ids)


async def is_undone(pool: Pool, turn_id: str | None) -> bool:
    """Whether the effects of the turn, if it exists, were compensated."""
    try:
        uuid.UUID(turn_id or "")
    except ValueError:
        return False  # a checkpoint that no turn made
    row = await fetch_one(pool, "turn_of_checkpoint_undone", turn_id=turn_id)
    return row is not None and bool(row["undone"])


async def delete(conn: Connection, turn_id: str, statuses: Sequence[str]) -> bool:
    """Deletes a turn's row if its status is one of these, and tells its thread; in the caller's transaction."""
    await hold_thread(conn, turn_id)
    params = {"turn_id": turn_id, "statuses": list(statuses), "error": Jsonb(_ROLLED_BACK)}
    return await (await conn.execute(query("roll_back_turn"), params)).fetchone() is not None


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
    held: bool = False,
) -> None:
    """Gives a turn its final status, and its thread the status that follows; in the caller's transaction.

    Does nothing to a turn that is final already. `held` says that the transaction has locked the thread.
    """
    if not held:
        await hold_thread(conn, turn_id)
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
