"""Owns the activities that run a turn's graph: begin, one per effect node (named after it), advance.

Each claims its scope before it reads anything, beats by itself, runs the graph to the next frontier and returns ids
only; an effect that a run of its graph waits for claims with its first write. Next: `adapter/engine.py`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from temporalio import activity
from temporalio.common import RawValue

from activities.failures import translate
from activities.heartbeat import Attempts, beat_from_anywhere, beating
from activities.stopping import HandedBack, to_its_end
from adapter import faultpoints
from adapter.engine import Engine
from adapter.entry import Entry, Outcome
from adapter.errors import EarlierFirst, NotFound, StoreUnavailable
from adapter.store.claims import Claim
from adapter.store.pool import Pool, until_back
from adapter.store.turns import claim_and_load
from workflows import names
from workflows.contracts import Effect, Queued, Step, Stepped

log = logging.getLogger("turns")

T = TypeVar("T")

# With the default of 20 attempts, PostgreSQL may be away for two hours.
_LONGEST_WAIT_SECONDS = 600.0


class StepActivities:
    """The graph-running activities of one worker process."""

    def __init__(self, pool: Pool, engine: Engine, attempts: Attempts, left: set[asyncio.Task[Any]]) -> None:
        self._pool = pool
        self._engine = engine
        self._attempts = attempts
        self._left = left

    @activity.defn(name=names.BEGIN)
    async def begin(self, step: Step) -> Stepped:
        """Applies the turn's input and runs inline nodes up to the first effects.

        A turn that was accepted earlier and has not ended goes first, whichever of them was submitted first (I3).
        """
        return await self._run(step, first=True)

    @activity.defn(name=names.ADVANCE)
    async def advance(self, step: Step) -> Stepped:
        """Finds the writes of parallel branches and goes on to the next frontier."""
        return await self._run(step)

    @activity.defn(dynamic=True)
    async def node(self, args: Sequence[RawValue]) -> Stepped:
        """Runs the effect nodes it was scheduled for; Temporal shows it under the node's name.

        The first one of a turn may begin it, too.
        """
        step = activity.payload_converter().from_payload(args[0].payload, Step)
        return await self._run(step, first=step.first is not None)

    async def _run(self, step: Step, *, first: bool = False) -> Stepped:
        info = activity.info()
        started = time.monotonic()
        try:
            async with beating(self._attempts, step.turn_id):
                outcome = await to_its_end(self._patiently(self._enter(step, first)), self._left)
        except EarlierFirst as earlier:
            return Stepped(older=Queued(earlier.turn_id, earlier.seq, earlier.hook))
        except NotFound:
            if first:
                return Stepped(finished=True, gone=True)  # it was deleted, or taken back, while it waited
            raise translate(NotFound(f"turn {step.turn_id} was deleted while it ran")) from None
        except HandedBack as exc:
            log.warning(
                "turn %s effect %s attempt %d is handed back: the worker stops%s",
                step.turn_id,
                info.activity_type,
                info.attempt,
                "" if exc.stopped else ", and it does not",
            )
            raise translate(exc) from None
        except Exception as exc:
            raise translate(exc) from None
        faultpoints.reached(faultpoints.BEGIN_COMMITTED if first else faultpoints.BEFORE_COMPLETION)
        if first:
            log.info("turn %s on thread %s began", step.turn_id, step.thread_id)
        if step.allow or step.first:
            milliseconds = (time.monotonic() - started) * 1000
            log.info(
                "turn %s effect %s attempt %d done in %.0f ms",
                step.turn_id,
                info.activity_type,
                info.attempt,
                milliseconds,
            )
        if outcome.finished:
            waits = " and waits for an answer" if outcome.interrupted else ""
            log.info("turn %s on thread %s ended%s", step.turn_id, step.thread_id, waits)
        return _stepped(outcome)

    async def _patiently(self, attempt: Coroutine[Any, Any, T]) -> T:
        """Runs an attempt; one that PostgreSQL failed ends only when it is back, or could be another worker's.

        Attempts are limited, since a node may be what kills its worker: an outage must not use them up.
        """
        try:
            return await attempt
        except StoreUnavailable:
            await until_back(self._pool, min(2.0 ** activity.info().attempt, _LONGEST_WAIT_SECONDS))
            raise

    async def _enter(self, step: Step, first: bool) -> Outcome:
        faultpoints.reached(faultpoints.BEFORE_CLAIM)
        info = activity.info()
        entry = Entry(
            claim=make_claim(step.thread_id, _scope(step)),
            allow=step.allow,
            branches=step.branches or ((),),
            held=step.held,
            attempt=info.attempt,
            first=first,
            node=step.first,
            again=step.again,
            run_id=info.workflow_run_id or "",
            begun_in=step.begun_in,
            checkpoint=step.checkpoint,
            fork=step.fork,
            first_attempt_at=info.scheduled_time.timestamp(),
            heartbeat=beat_from_anywhere(),
            timeout=_lost_after(info),
        )
        outcome = await self._engine.go_on(step.turn_id, entry)
        if outcome is None:
            turn = await claim_and_load(self._pool, entry.claim, step.turn_id, whole=first, first=first)
            outcome = await self._engine.run(turn, entry)
        return outcome


def _lost_after(info: activity.Info) -> float:
    if info.retry_policy is not None and info.retry_policy.maximum_attempts == 1:
        return 0.0
    timeouts = (info.heartbeat_timeout, info.start_to_close_timeout)
    return min((timeout.total_seconds() for timeout in timeouts if timeout is not None), default=0.0)


def make_claim(thread_id: str, scope: str = "") -> Claim:
    """Returns the running attempt's claim; its token is issued by Temporal's server (I5)."""
    info = activity.info()
    return Claim(thread_id, scope, _nanoseconds(info.current_attempt_scheduled_time), info.attempt)


def _nanoseconds(when: datetime) -> int:
    since = when - datetime(1970, 1, 1, tzinfo=UTC)
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000


def _scope(step: Step) -> str:
    if not step.branches:
        return ""
    first = step.branches[0]
    if len(step.branches) == 1:
        return "/".join(first)
    return "/".join((*first[:-1], f"{first[-1]}+{len(step.branches) - 1}"))


def _stepped(outcome: Outcome) -> Stepped:
    frontier = tuple(Effect(e.task_id, e.node, e.within, e.label, dict(e.options)) for e in outcome.frontier)
    return Stepped(
        frontier,
        outcome.interrupted,
        outcome.finished,
        checkpoint=outcome.checkpoint,
        moved_on=outcome.moved_on,
        taken_back=outcome.taken_back,
    )
