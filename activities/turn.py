"""Owns the activities around the steps: finish, compensate, record_failure, and the hand-over of waiting turns."""

from __future__ import annotations

import contextlib
import logging

from psycopg.rows import DictRow
from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.service import RPCError, RPCStatusCode

from activities.failures import translate
from activities.heartbeat import Attempts, beating
from activities.step import make_claim
from adapter import faultpoints
from adapter.compensation import undo
from adapter.errors import NotFound, Superseded, Undone
from adapter.store import stops, turns
from adapter.store.claims import assert_claim, take
from adapter.store.event_log import Event, append_events
from adapter.store.pool import Pool, fetch_all, store_errors
from adapter.wire import dumps
from workflows import names
from workflows.contracts import (
    Compensate,
    Defaults,
    Delayed,
    Failure,
    Finish,
    HandOver,
    Queued,
    Recorded,
    Submit,
)
from workflows.start import submit

log = logging.getLogger("turns")


class TurnActivities:
    """The activities of one worker process that do not run the graph.

    Args:
        pool: PostgreSQL.
        client: Temporal's.
        attempts: those that run in this process.
        task_queue: of turns.
        defaults: for turns that are submitted here.
        compensation_attempts: see Settings.
        compensation_timeout: see Settings.
    """

    def __init__(
        self,
        pool: Pool,
        client: Client,
        attempts: Attempts,
        *,
        task_queue: str,
        defaults: Defaults,
        compensation_attempts: int,
        compensation_timeout: float,
    ) -> None:
        self._pool = pool
        self._client = client
        self._attempts = attempts
        self._task_queue = task_queue
        self._defaults = defaults
        self._compensation_attempts = compensation_attempts
        self._compensation_timeout = compensation_timeout

    @activity.defn(name=names.FINISH)
    async def finish(self, request: Finish) -> None:
        """Stores that a turn was stopped; its thread stays at the last checkpoint, or goes back to the one before."""
        faultpoints.reached(faultpoints.IN_FINISH)
        try:
            async with beating():
                turn = await turns.claim_and_load(self._pool, make_claim(request.thread_id), request.turn_id)
                async with store_errors(), self._pool.connection() as conn, conn.transaction():
                    await take(conn, make_claim(request.thread_id), self._pool)
                    if request.roll_back:
                        await turns.roll_back(conn, turn)
                    else:
                        await turns.finish(
                            conn,
                            request.turn_id,
                            status="interrupted",
                            thread_status="interrupted",
                            error=_STOPPED,
                        )
        except NotFound:
            return  # the turn or its thread was deleted meanwhile, or the attempt before rolled it back
        except Exception as exc:
            raise translate(exc) from None
        what = "rolled back" if request.roll_back else "stopped"
        log.info("turn %s on thread %s %s", request.turn_id, request.thread_id, what)

    @activity.defn(name=names.COMPENSATE)
    async def compensate(self, request: Compensate) -> None:
        """Undoes the finished effects that say how, the last first; what cannot be undone is journaled."""
        claim = make_claim(request.thread_id)
        try:
            async with beating(self._attempts, request.turn_id):
                await undo(
                    self._pool,
                    claim,
                    request.turn_id,
                    continued=request.continued,
                    attempts=self._compensation_attempts,
                    seconds=self._compensation_timeout,
                )
        except NotFound:
            return  # the thread was deleted meanwhile
        except Exception as exc:
            raise translate(exc) from None

    @activity.defn(name=names.RECORD_FAILURE)
    async def record_failure(self, failure: Failure) -> Recorded:
        """Stores that a turn failed and shows its error to clients.

        Returns:
            The run that failed: in one that Reset made from it, the result of this activity, recorded there or found
            now, names the run before, which is how the workflow knows that it shall try again (I4). And whether
            effects are to be undone.
        """
        run_id = activity.info().workflow_run_id
        assert run_id is not None
        claim = make_claim(failure.thread_id)
        try:
            async with beating():
                turn = await turns.claim_and_load(self._pool, claim, failure.turn_id)
                undoable = await fetch_all(
                    self._pool, "compensable_effects", turn_id=failure.turn_id, continued=True
                )
                if turn.status in turns.FINAL:
                    failed = turn.status == "error"
                    return Recorded((turn.run_id if failed else None) or run_id, failed and bool(undoable))
                faultpoints.reached(faultpoints.IN_FAILURE)
                error = turn.error or {
                    "error": failure.kind,
                    "message": f'"{failure.node}" did not finish: {failure.kind}',
                }
                async with store_errors(), self._pool.connection() as conn, conn.transaction():
                    await assert_claim(conn, claim)
                    await turns.hold_thread(conn, failure.turn_id)
                    await append_events(conn, failure.turn_id, [Event("error", dumps(error))])
                    await turns.finish(
                        conn, failure.turn_id, status="error", thread_status="error", error=error
                    )
        except (NotFound, Superseded, Undone):
            return Recorded(run_id)  # the thread was deleted, or the turn is over for good: nothing to tell
        except Exception as exc:
            raise translate(exc) from None
        faultpoints.reached(faultpoints.AFTER_FAILURE)
        log.info("turn %s on thread %s failed: %s", failure.turn_id, failure.thread_id, error["error"])
        return Recorded(run_id, bool(undoable))

    @activity.defn(name=names.HAND_OVER)
    async def hand_over(self, request: HandOver) -> None:
        """Waits until the failing run has closed, then submits the turns that waited for it."""
        handle = self._client.get_workflow_handle(names.workflow_id(request.thread_id), run_id=request.run_id)
        try:
            async with beating():
                with contextlib.suppress(WorkflowFailureError):
                    await handle.result(follow_runs=False)
                faultpoints.reached(faultpoints.IN_HAND_OVER)
                queue = {turn.turn_id: turn for turn in request.queue}
                if request.orphans:
                    for row in await fetch_all(self._pool, "open_turns", thread_id=request.thread_id):
                        if row["due_at"] is None:
                            queue[str(row["turn_id"])] = queued(row)
                for turn in sorted(queue.values(), key=lambda turn: turn.seq):
                    await self._submit(request.thread_id, turn, request.defaults)
        except Exception as exc:
            log.warning(
                "turns that wait on thread %s are not handed over yet: %s",
                request.thread_id,
                type(exc).__name__,
            )
            raise

    @activity.defn(name=names.FALL_DUE)
    async def fall_due(self, request: Delayed) -> None:
        """Submits a turn that waited for a time, behind what was accepted meanwhile; a cancelled one stays away."""
        thread_id = request.thread_id
        try:
            async with beating():
                row = await turns.fall_due(self._pool, thread_id, request.turn_id)
                if row is None:
                    return
                turn = queued(row)
                if request.cut_in:
                    await stops.cancel_waiting(self._pool, thread_id, turn.seq, roll_back=request.roll_back)
                await submit(
                    self._client,
                    thread_id,
                    Submit(turn, request.cut_in, request.roll_back),
                    task_queue=self._task_queue,
                    defaults=request.defaults,
                )
                if request.cut_in:
                    await stops.notify_cut_in(self._pool, thread_id, turn.seq)
        except Exception as exc:
            raise translate(exc) from None

    @activity.defn(name=names.SWEEP)
    async def sweep(self) -> int:
        """Starts turns that were recorded but never submitted, because the API died in between, or lost their run.

        Returns:
            How many turns were submitted; submitting one that runs already changes nothing.
        """
        async with beating():
            age = {"age_seconds": SWEEP_AGE_SECONDS}
            rows = await fetch_all(self._pool, "stranded_turns", **age, limit=500)
            quiet = await fetch_all(self._pool, "quiet_turns", **age, limit=100)
            rows += [row for row in quiet if await self._lost_its_run(str(row["thread_id"]))]
            for row in rows:
                thread_id = str(row["thread_id"])
                due: DictRow | None = row
                if row["due_at"] is not None:
                    due = await turns.fall_due(self._pool, thread_id, str(row["turn_id"]))
                if due is not None:
                    await self._submit(thread_id, queued(due), self._defaults)
        return len(rows)

    async def _lost_its_run(self, thread_id: str) -> bool:
        """Whether nothing runs the thread's turn, as when an older run was reset, or Temporal lost its data.

        A run that somebody terminated was meant to stop.
        """
        try:
            described = await self._client.get_workflow_handle(names.workflow_id(thread_id)).describe()
        except RPCError as exc:
            return exc.status == RPCStatusCode.NOT_FOUND
        return described.status not in (
            WorkflowExecutionStatus.RUNNING,
            WorkflowExecutionStatus.TERMINATED,
        )

    async def _submit(self, thread_id: str, turn: Queued, defaults: Defaults) -> None:
        await submit(self._client, thread_id, Submit(turn), task_queue=self._task_queue, defaults=defaults)


def queued(row: DictRow) -> Queued:
    """Returns a turn on its way to its run, of its row."""
    return Queued(str(row["turn_id"]), row["seq"], row["hook"])


# As the Agent Server's threads tell of a cancelled run.
_STOPPED = {"error": "UserInterrupt", "message": "User interrupted the run"}

# Older than any request takes to submit its turn.
SWEEP_AGE_SECONDS = 30
