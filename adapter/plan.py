"""Owns the plan of an entry: what LangGraph is given, from which checkpoint, and where the turn's budget ends.

A turn's begin brings its input; every later entry goes on from the head. After a Reset in Temporal the head may
be elsewhere: then the entry addresses an earlier checkpoint, and LangGraph forks there. Next: `adapter/engine.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.types import Command

from adapter import _pregel
from adapter.errors import Undone
from adapter.mending import mended
from adapter.saver import FencedSaver
from adapter.store import turns
from adapter.store.pool import Pool
from adapter.store.turns import TurnRow
from adapter.turn_request import addressed, input_of, resume_map


@dataclass(frozen=True, slots=True)
class Plan:
    """What an entry passes to LangGraph.

    Attributes:
        input: a new input or command; None goes on.
        origin: the turn that idempotency keys are derived from.
        resume: interrupt id to answer.
        stop: last superstep of the root graph this turn may run.
        recursion_limit: supersteps this entry may run.
        checkpoint_id: the checkpoint to fork from; None is the thread's head.
        base: the thread's head, as begin finds it.
        begins: whether this brings the turn's input, so that its row has to be told.
    """

    input: Any
    origin: str
    resume: Mapping[str, Any] | None
    stop: int
    recursion_limit: int
    checkpoint_id: str | None = None
    base: str | None = None
    begins: bool = False


async def plan(
    pool: Pool,
    saver: FencedSaver,
    turn: TurnRow,
    *,
    limit: int,
    first: bool,
    fork_from: str | None,
    over: bool,
) -> Plan:
    """Plans an entry.

    Args:
        pool: PostgreSQL.
        saver: the entry's, which LangGraph will load the head from.
        turn: its row; with its input if it is not applied yet, or is to be applied again.
        limit: supersteps the turn may run.
        first: whether this is the turn's begin.
        fork_from: the checkpoint that a run made by Reset goes on from, if the thread has moved past it.
        over: whether a run made by Reset begins the turn over.

    Raises:
        Undone: the turn goes on with one whose effects were compensated.
        RuntimeError: a scalar answer, and several interrupts wait.
    """
    started = turn.origin is not None and turn.stop is not None
    if started and fork_from is None and not over and (turn.applied or not first):
        # Whoever goes on needs to know how far the thread is; the state itself is loaded once, by LangGraph.
        return _going_on(turn, -2 if turn.head_step is None else turn.head_step, None)
    head = saver.is_new() if turn.head is None else await saver.peek(turn.thread_id)
    base = turn.base if over else None
    if over and base is None:
        # There is nothing before the turn to start from: its input is the thread's first checkpoint.
        fork_from = await turns.first_checkpoint(pool, turn.thread_id)
        base = fork_from
    if over and head is not None and head.checkpoint["id"] == base:
        # It has not moved on from where it began: an input that is the head is not brought again.
        over, fork_from, base = base != fork_from, None, None
    if started and (fork_from is not None or (not over and (turn.applied or not first))):
        step = _step(head if fork_from is None else await _tuple(pool, turn, fork_from))
        return _going_on(turn, step, fork_from)
    return await _beginning(pool, turn, head, _step(head) + 1, base, limit=limit, over=over)


def _going_on(turn: TurnRow, step: int, fork_from: str | None) -> Plan:
    """Plans an entry that brings nothing; `step` is that of the checkpoint it starts from."""
    assert turn.origin is not None and turn.stop is not None
    # LangGraph counts the checkpoint that a fork stores, too.
    budget = max(1, turn.stop - step - 2 + (fork_from is not None))
    return Plan(None, turn.origin, turn.resume, turn.stop, budget, checkpoint_id=fork_from)


async def _beginning(
    pool: Pool,
    turn: TurnRow,
    head: CheckpointTuple | None,
    step: int,
    over_from: str | None,
    *,
    limit: int,
    over: bool,
) -> Plan:
    """Plans the entry that brings the turn's input.

    For the first time, or over again: from `over_from`, if the thread has moved on since.
    """
    plan_input, continues = input_of(turn)
    checkpoint_id = addressed(turn.request)
    if checkpoint_id is not None and head is not None and head.checkpoint["id"] == checkpoint_id:
        checkpoint_id = None  # the head is never addressed: an addressed run forks
    forks = checkpoint_id is not None
    checkpoint_id = checkpoint_id or over_from
    found = head if checkpoint_id is None else await _tuple(pool, turn, checkpoint_id)
    if continues and found is not None and await turns.is_undone(pool, _made_by(found)):
        raise Undone(
            "The turn that this one would go on with failed and its effects were compensated. Send a new input."
        )
    if turn.previous_status in ("interrupted", "error"):
        plan_input = mended(plan_input, found)
    # Going on from an earlier checkpoint means doing it again on purpose.
    origin = (turn.thread_origin or turn.turn_id) if continues and not forks else turn.turn_id
    if over and turn.origin is not None:
        origin = turn.origin
    resume = None
    if isinstance(plan_input, Command) and plan_input.resume is not None:
        if over_from is not None:
            # The answer belongs to the question of the branch that is left behind: the fork asks anew.
            asked = cast("Command[Any]", plan_input)
            rest: Command[Any] = Command(update=asked.update, goto=asked.goto)
            plan_input = rest if rest.update or rest.goto else None
    if isinstance(plan_input, Command) and plan_input.resume is not None:
        open_tasks = _pregel.open_tasks(found.pending_writes if found else [])
        resume, plan_input = resume_map(
            cast("Command[Any]", plan_input), [i.id for t in open_tasks.values() for i in t.interrupts]
        )
    if checkpoint_id is not None:
        # A fork without new input stores a checkpoint of its own, which counts as a superstep.
        step = _step(found) + (2 if plan_input is None else 1)
    base = None if head is None else head.checkpoint["id"]
    return Plan(plan_input, origin, resume, step + limit + 1, limit, checkpoint_id, base, begins=True)


async def _tuple(pool: Pool, turn: TurnRow, checkpoint_id: str | None) -> CheckpointTuple | None:
    where = {"thread_id": turn.thread_id, "checkpoint_ns": ""}
    if checkpoint_id is not None:
        where["checkpoint_id"] = checkpoint_id
    return await FencedSaver(pool).aget_tuple({"configurable": where})


def _made_by(found: CheckpointTuple) -> str | None:
    return cast("Mapping[str, Any]", found.metadata).get("run_id")


def _step(found: CheckpointTuple | None) -> int:
    return int(cast("Mapping[str, Any]", found.metadata).get("step", -2)) if found else -2
