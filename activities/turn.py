"""Owns the activities that only write rows: finish, record_failure, and the hand-over of waiting turns."""

from __future__ import annotations

import asyncio
import logging

from temporalio import activity
from temporalio.client import Client, WorkflowFailureError

from activities.failures import translate
from activities.step import make_claim
from adapter import faultpoints
from adapter.errors import NotFound, Superseded
from adapter.store import turns
from adapter.store.pool import Pool, fetch_all, store_errors
from adapter.wire import dumps
from adapter.writer import Event, append_events
from workflows import names
from workflows.contracts import Defaults, Failure, Finish, HandOver, Queued, Submit
from workflows.start import submit

log = logging.getLogger("turns")


class TurnActivities:
    """The row-writing activities of one worker process."""

    def __init__(self, pool: Pool, client: Client, *, task_queue: str, defaults: Defaults) -> None:
        self._pool = pool
        self._client = client
        self._task_queue = task_queue
        self._defaults = defaults

    @activity.defn(name=names.FINISH)
    async def finish(self, request: Finish) -> None:
        """Stores that a turn was stopped; its thread stays at the last checkpoint."""
        faultpoints.reached(faultpoints.IN_FINISH)
        try:
            async with store_errors(), self._pool.connection() as conn, conn.transaction():
                await turns.take(conn, make_claim(request.thread_id), self._pool)
                await turns.finish(
                    conn,
                    request.turn_id,
                    status="interrupted",
                    thread_status="interrupted",
                    error=_STOPPED,
                )
        except NotFound:
            return  # the thread was deleted meanwhile
        except Exception as exc:
            raise translate(exc) from None
        log.info("turn %s on thread %s stopped", request.turn_id, request.thread_id)

    @activity.defn(name=names.RECORD_FAILURE)
    async def record_failure(self, failure: Failure) -> str:
        """Stores that a turn failed and shows its error to clients.

        Returns:
            The run id it ran under: in a run that Reset made from the failed one, the recorded result of this
            activity names the run before, which is how the workflow knows that it shall try again (I4).
        """
        run_id = activity.info().workflow_run_id
        assert run_id is not None
        try:
            turn = await turns.claim_and_load(self._pool, make_claim(failure.thread_id), failure.turn_id)
            if turn.status in turns.FINAL:
                return run_id
            error = turn.error or {
                "error": failure.kind,
                "message": f'"{failure.node}" did not finish: {failure.kind}',
            }
            async with store_errors(), self._pool.connection() as conn, conn.transaction():
                await append_events(conn, failure.turn_id, [Event("error", dumps(error))])
                await turns.finish(conn, failure.turn_id, status="error", thread_status="error", error=error)
        except (NotFound, Superseded):
            return run_id  # the thread was deleted, or later turns built on this one: nothing to tell
        except Exception as exc:
            raise translate(exc) from None
        faultpoints.reached(faultpoints.AFTER_FAILURE)
        log.info("turn %s on thread %s failed: %s", failure.turn_id, failure.thread_id, error["error"])
        return run_id

    @activity.defn(name=names.HAND_OVER)
    async def hand_over(self, request: HandOver) -> None:
        """Waits until the failing run has closed, then submits the turns that waited for it."""
        handle = self._client.get_workflow_handle(names.workflow_id(request.thread_id), run_id=request.run_id)
        closed = asyncio.create_task(handle.result(follow_runs=False))
        while True:
            done, _ = await asyncio.wait({closed}, timeout=10)
            activity.heartbeat()
            if done:
                break
        try:
            closed.result()
        except WorkflowFailureError:
            pass
        faultpoints.reached(faultpoints.IN_HAND_OVER)
        for turn in request.queue:
            await self._submit(request.thread_id, turn, request.defaults)

    @activity.defn(name=names.SWEEP)
    async def sweep(self) -> int:
        """Starts turns that were recorded but never submitted, because the API died in between.

        Returns:
            How many turns were submitted; submitting one that runs already changes nothing.
        """
        rows = await fetch_all(self._pool, "stranded_turns", age_seconds=SWEEP_AGE_SECONDS, limit=500)
        for row in rows:
            await self._submit(str(row["thread_id"]), Queued(str(row["turn_id"]), row["seq"]), self._defaults)
        return len(rows)

    async def _submit(self, thread_id: str, turn: Queued, defaults: Defaults) -> None:
        await submit(self._client, thread_id, Submit(turn), task_queue=self._task_queue, defaults=defaults)


# As the Agent Server's threads tell of a cancelled run.
_STOPPED = {"error": "UserInterrupt", "message": "User interrupted the run"}

# Older than any request takes to submit its turn.
SWEEP_AGE_SECONDS = 30
