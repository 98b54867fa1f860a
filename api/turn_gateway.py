"""Owns the way to Temporal: starting turns, cancelling them, asking how far they are.

No other module of `api` knows Temporal. What goes there are ids and small facts; what a turn is about stays
in its row. Next: `workflows/turn.py`.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from psycopg.rows import DictRow
from temporalio.api.failure.v1 import Failure
from temporalio.client import Client, WorkflowQueryFailedError, WorkflowQueryRejectedError
from temporalio.envconfig import ClientConfig
from temporalio.service import RPCError, RPCStatusCode

from adapter.first import FirstEffect
from adapter.settings import Settings
from adapter.store import requests, stops
from adapter.store.pool import Pool
from api.errors import Unavailable
from workflows import names
from workflows.contracts import Defaults, Delayed, First, Progress, Queued, Submit
from workflows.start import submit, submit_later

log = logging.getLogger("turns.api")

TemporalClient: TypeAlias = Client

# A query needs a worker; without one the answer is what Temporal itself knows.
_QUERY_TIMEOUT = timedelta(seconds=3)
_RPC_TIMEOUT = timedelta(seconds=10)
# How long a stopping process goes on handing over turns; the sweep submits what is left.
_LAST_SUBMITS_SECONDS = 2.0


async def connect() -> TemporalClient:
    """Returns a client as Temporal's own environment or profile says; it connects at its first call."""
    config = ClientConfig.load_client_connect_config()
    config.setdefault("target_host", "127.0.0.1:7233")
    return await Client.connect(**config, lazy=True)


@dataclass(frozen=True, slots=True)
class Running:
    """An activity under way.

    Attributes:
        node: the node it runs, or a step of the turn itself (`turn:begin`, …).
        label: its place, as a person reads it.
        attempt: which attempt this is, from 1.
        last_error: the type of what ended the attempt before, or None.
    """

    node: str
    label: str
    attempt: int
    last_error: str | None


@dataclass(frozen=True, slots=True)
class ThreadProgress:
    """What Temporal knows about a thread.

    Attributes:
        running: activities under way, with their attempts.
        done: labels of the running turn's effects that are done; None when no worker answered.
        interrupted: tasks of the running turn that wait for an answer; None when no worker answered.
    """

    running: tuple[Running, ...] = ()
    done: tuple[str, ...] | None = ()
    interrupted: int | None = 0


class TurnGateway:
    """Starts, cancels and watches turns.

    Args:
        client: Temporal's.
        pool: PostgreSQL.
        settings: of this process.
    """

    def __init__(self, client: TemporalClient, pool: Pool, settings: Settings) -> None:
        self._client = client
        self._pool = pool
        self._task_queue = settings.task_queue
        self._defaults = Defaults(
            hb=settings.heartbeat_timeout,
            stc=settings.node_timeout,
            attempts=settings.node_attempts,
            parallel=settings.parallel_effects,
        )
        self._submits: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------ start

    def start(
        self, turn: DictRow, *, cut_in: bool, roll_back: bool = False, first: FirstEffect | None = None
    ) -> None:
        """Submits a recorded turn in the background: its client does not wait for Temporal.

        A turn whose submit fails stays pending; the sweep's schedule submits it.

        Args:
            turn: its row.
            cut_in: whether it stops what runs and what waits on its thread.
            roll_back: whether what it stops is taken back, too.
            first: the effect that it starts with, if that is known.
        """
        queued = _queued(turn, first)
        task = asyncio.create_task(self._start(turn, queued, cut_in=cut_in, roll_back=roll_back))
        self._submits.add(task)
        task.add_done_callback(self._submits.discard)

    async def _start(self, turn: DictRow, queued: Queued, *, cut_in: bool, roll_back: bool) -> None:
        thread_id, turn_id, seq = str(turn["thread_id"]), str(turn["turn_id"]), int(turn["seq"])
        try:
            if turn["due_at"] is not None:
                await self._delay(turn, cut_in=cut_in, roll_back=roll_back)
                return
            if cut_in:
                # What waits is cut in on, too; a run that such a turn may still get does nothing.
                await stops.cancel_waiting(self._pool, thread_id, seq, roll_back=roll_back)
            await self._submit(thread_id, Submit(queued, cut_in, roll_back))
            if cut_in:
                await stops.notify_cut_in(self._pool, thread_id, seq)
            await requests.notify_thread(self._pool, thread_id)
        except Exception as exc:
            log.warning(
                "turn %s on thread %s is recorded but not started: %s; the sweep will start it",
                turn_id,
                thread_id,
                type(exc).__name__,
            )

    async def _submit(self, thread_id: str, request: Submit) -> None:
        await submit(self._client, thread_id, request, task_queue=self._task_queue, defaults=self._defaults)

    async def _delay(self, turn: DictRow, *, cut_in: bool, roll_back: bool) -> None:
        thread_id, due = str(turn["thread_id"]), turn["due_at"]
        request = Delayed(thread_id, str(turn["turn_id"]), cut_in, roll_back, self._defaults)
        seconds = max(0.0, (due - datetime.now(UTC)).total_seconds())
        await submit_later(self._client, request, seconds=seconds, task_queue=self._task_queue)

    async def close(self) -> None:
        """Waits shortly for submits under way, then gives them up."""
        if self._submits:
            await asyncio.wait(self._submits, timeout=_LAST_SUBMITS_SECONDS)
        for task in self._submits:
            task.cancel()
        await asyncio.gather(*self._submits, return_exceptions=True)

    # ------------------------------------------------------------ cancel

    async def cancel(self, thread_id: str, turn_id: str, *, roll_back: bool = False) -> None:
        """Asks a turn to stop; its row is final when it has, or gone if it is rolled back.

        Raises:
            Unavailable: Temporal does not answer.
        """
        stop_pending = stops.discard_pending if roll_back else stops.cancel_pending
        if await stop_pending(self._pool, turn_id):
            return
        signal = names.ROLL_BACK if roll_back else names.CANCEL
        if not await self._signal(thread_id, signal, turn_id) or await stops.overtaken(self._pool, turn_id):
            # Its row may be open and nothing runs it: somebody terminated its workflow.
            if roll_back:
                await self._take_back(thread_id, turn_id)
                return
            log.warning("turn %s on thread %s has no run any more; it counts as stopped", turn_id, thread_id)
            await stops.abandon(self._pool, thread_id, turn_id)
            return
        await stops.notify_cancel(self._pool, turn_id)

    async def _take_back(self, thread_id: str, turn_id: str) -> None:
        """Starts a run that takes the turn back, if it is still open; its effects are undone there."""
        turn = await requests.get_turn(self._pool, thread_id, turn_id)
        await self._submit(thread_id, Submit(_queued(turn), roll_back=True))

    async def _signal(self, thread_id: str, signal: str, turn_id: str) -> bool:
        """Tells the thread's run; returns False when there is none."""
        handle = self._client.get_workflow_handle(names.workflow_id(thread_id))
        try:
            await handle.signal(signal, turn_id, rpc_timeout=_RPC_TIMEOUT)
        except RPCError as exc:
            if exc.status != RPCStatusCode.NOT_FOUND:
                raise _unavailable(exc) from exc
            return False
        except RuntimeError as exc:
            raise _unavailable(exc) from exc
        return True

    # ------------------------------------------------------------ watch

    async def progress(self, thread_id: str) -> ThreadProgress:
        """Returns what a thread's run is doing.

        Raises:
            Unavailable: Temporal does not answer.
        """
        handle = self._client.get_workflow_handle(names.workflow_id(thread_id))
        try:
            described = await handle.describe(rpc_timeout=_RPC_TIMEOUT)
        except RPCError as exc:
            if exc.status == RPCStatusCode.NOT_FOUND:
                return ThreadProgress()
            raise _unavailable(exc) from exc
        except RuntimeError as exc:
            raise _unavailable(exc) from exc
        if described.close_time is not None:
            return ThreadProgress()
        try:
            told = await handle.query(names.PROGRESS, result_type=Progress, rpc_timeout=_QUERY_TIMEOUT)
        except (RPCError, WorkflowQueryFailedError, WorkflowQueryRejectedError):
            told = None
        labels = list(told.running) if told else []
        running = tuple(
            Running(
                node=pending.activity_type.name,
                label=_take_label(labels, pending.activity_type.name),
                attempt=max(1, pending.attempt),
                last_error=_error_type(pending.last_failure) if pending.HasField("last_failure") else None,
            )
            for pending in described.raw_description.pending_activities
        )
        if told is None:
            return ThreadProgress(running, None, None)
        return ThreadProgress(running, told.done, told.interrupted)

    async def reachable(self) -> bool:
        """Whether Temporal answers."""
        try:
            return await self._client.service_client.check_health(timeout=_QUERY_TIMEOUT)
        except (RPCError, RuntimeError):
            return False


def _queued(turn: DictRow, first: FirstEffect | None = None) -> Queued:
    return Queued(
        str(turn["turn_id"]),
        int(turn["seq"]),
        "webhook" in turn["request"],
        None if first is None else First(first.node, first.options),
    )


def _take_label(labels: list[str], node: str) -> str:
    """Takes the label of one of the node's effects: the node's name, with an index or a count behind it."""
    for label in labels:
        if label == node or label.startswith((f"{node}[", f"{node} and ")):
            labels.remove(label)
            return label
    return node


def _error_type(failure: Failure) -> str:
    kind = failure.WhichOneof("failure_info") or "failure"
    if kind == "application_failure_info":
        return failure.application_failure_info.type or "error"
    return kind.removesuffix("_failure_info")


def _unavailable(exc: Exception) -> Unavailable:
    log.warning("Temporal does not answer: %s", type(exc).__name__)
    return Unavailable("Temporal is not reachable. Try again.")
