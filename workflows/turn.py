"""Owns the turn workflow: one run a turn, keyed by its thread; it holds ids and decides what runs next.

It imports neither LangGraph nor the database, so no change of a graph can break its replay (I1).
Next: `activities/step.py` runs what is scheduled here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception
from temporalio.workflow import ParentClosePolicy

from workflows import names
from workflows.contracts import (
    Compensate,
    Effect,
    Failure,
    Finish,
    First,
    Going,
    HandOver,
    Progress,
    Queued,
    Recorded,
    Step,
    Stepped,
    Submit,
    Submitted,
    TaskPath,
    TurnInput,
    Webhook,
)
from workflows.policy import activity_options, bookkeeping_options, compensation_options

T = TypeVar("T")

# Temporal refuses longer ones, of activity types and summaries, by failing the workflow task again and again.
_NAME_LENGTH = 200


@workflow.defn(name=names.TURN_WORKFLOW)
class TurnWorkflow:
    """One run carries one turn; turns that arrive meanwhile wait in its queue and become the next runs."""

    @workflow.init
    def __init__(self, start: TurnInput) -> None:
        self._start = start
        self._queue: list[Queued] = sorted(start.queue, key=lambda t: t.seq)
        self._turn: Queued | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._rolling_back = False
        self._cut_in: Submit | None = None
        self._take_back: set[str] = set()
        self._gone = False
        self._running: dict[str, str] = {}
        self._done: list[str] = []
        self._held: set[str] = set(start.going.held) if start.going else set()
        self._going: Going | None = start.going
        self._begun = start.going is not None
        self._older: Queued | None = None
        self._again = False
        self._tried_again: list[str] = []
        self._fork_from: str | None = None

    # ------------------------------------------------------------ what clients may say

    @workflow.update(name=names.SUBMIT)
    def submit(self, request: Submit) -> Submitted:
        """Takes a turn; a turn that is known already changes nothing."""
        known = {t.turn_id for t in self._queue}
        if self._turn is not None:
            known.add(self._turn.turn_id)
        if request.turn.turn_id not in known:
            self._put(request.turn)
        if request.cut_in:
            self._cut_in = request
            if self._turn is not None and self._turn.turn_id != request.turn.turn_id:
                self._stop(roll_back=request.roll_back)
        elif request.roll_back:
            self._take_back.add(request.turn.turn_id)
            self.roll_back(request.turn.turn_id)
        ids = [t.turn_id for t in self._queue]
        ahead = ids.index(request.turn.turn_id) if request.turn.turn_id in ids else 0
        return Submitted(ahead + (self._turn is not None))

    @workflow.signal(name=names.CANCEL)
    def cancel(self, turn_id: str) -> None:
        """Stops the turn if it is the running one; a turn that waits is stopped by its row."""
        if self._turn is not None and self._turn.turn_id == turn_id:
            self._stop()

    @workflow.signal(name=names.ROLL_BACK)
    def roll_back(self, turn_id: str) -> None:
        """As `cancel`, and takes back what the turn did to its thread."""
        if self._turn is not None and self._turn.turn_id == turn_id:
            self._stop(roll_back=True)

    @workflow.query(name=names.PROGRESS)
    def progress(self) -> Progress:
        """Tells what runs, what is done and what waits."""
        return Progress(
            turn_id=self._turn.turn_id if self._turn else None,
            running=tuple(self._running.values()),
            done=tuple(self._done),
            interrupted=len(self._held),
            queue=tuple(t.turn_id for t in self._queue),
        )

    def _put(self, turn: Queued) -> None:
        self._queue.append(turn)
        self._queue.sort(key=lambda t: t.seq)

    def _stop(self, *, roll_back: bool = False) -> None:
        self._stopping = True
        self._rolling_back = self._rolling_back or roll_back
        if self._task is not None:
            self._task.cancel()

    # ------------------------------------------------------------ one turn

    @workflow.run
    async def run(self, start: TurnInput) -> str:
        """Runs the first turn of the queue, then continues as new with the rest."""
        await workflow.wait_condition(lambda: bool(self._queue or self._going))
        turn = self._turn = self._going.turn if self._going else self._queue.pop(0)
        if turn.turn_id in self._take_back:
            self._stop(roll_back=True)
        ended = await self._run_until_it_ends(turn)
        while (older := self._older) is not None and not self._stopping:
            # Updates may come in another order than their turns were accepted in (or not at all, if the API died), and
            # a turn may have lost its run.
            self._older = None
            self._put(turn)
            turn = self._turn = older
            self._queue = [t for t in self._queue if t.turn_id != turn.turn_id]
            if self._cut_in is not None and turn.seq < self._cut_in.turn.seq:
                self._stop(roll_back=self._cut_in.roll_back)
            elif turn.turn_id in self._take_back:
                self._stop(roll_back=True)
            ended = await self._run_until_it_ends(turn)
        self._turn = None
        if self._gone and not self._queue:
            # As when the run of a turn that was taken back is reset: that ended the run which the thread had.
            await _outlast(self._hand_over(workflow.info().run_id, orphans=True))
        await workflow.wait_condition(workflow.all_handlers_finished)
        if self._queue or self._going:
            workflow.continue_as_new(
                TurnInput(start.thread_id, tuple(self._queue), start.defaults, self._going),
            )
        return ended

    async def _run_until_it_ends(self, turn: Queued) -> str:
        while True:
            failed: ActivityError | None = None
            try:
                self._task = asyncio.create_task(self._steps(turn))
                if self._stopping:
                    self._task.cancel()
                await self._task
                if turn.hook and self._older is None and self._going is None and not self._gone:
                    await _outlast(self._call_webhook(turn))
                return "finished"
            except BaseException as exc:
                stopped = is_cancelled_exception(exc) or isinstance(exc, asyncio.CancelledError)
                # Or the worker was lost, or the node failed, while the cancel was on its way.
                if stopped or (self._stopping and isinstance(exc, ActivityError)):
                    if (refused := await _outlast(self._finish_stopped(turn))) is not None:
                        await _outlast(self._fail_unless_reset(turn, refused))
                    elif not self._rolling_back:
                        await _outlast(self._call_webhook(turn))
                    return "stopped"
                if isinstance(exc, _MovedOn):
                    # This run was made by Reset to a step that the thread is past: it forks there. Task ids change.
                    self._fork_from = exc.checkpoint
                    self._held.clear()
                    continue
                if not isinstance(exc, ActivityError):
                    raise
                failed = exc
            finally:
                self._task = None
                self._running.clear()
            await _outlast(self._fail_unless_reset(turn, failed))
            self._again = True
            # This run was made by Reset: the failure belongs to the run before, so the failed node is tried again.

    async def _finish_stopped(self, turn: Queued) -> ActivityError | None:
        """Returns why the turn is not this run's to stop, as when a Reset brought its cancel back."""
        if self._rolling_back:
            await self._compensate(turn, continued=False)
        try:
            await workflow.execute_activity(
                names.FINISH,
                Finish(self._start.thread_id, turn.turn_id, self._rolling_back),
                summary="rolled back" if self._rolling_back else "stopped",
                **bookkeeping_options(self._start.defaults),
            )
        except ActivityError as refused:
            return refused
        return None

    async def _compensate(self, turn: Queued, *, continued: bool) -> None:
        await workflow.execute_activity(
            names.COMPENSATE,
            Compensate(self._start.thread_id, turn.turn_id, continued),
            summary="undoes finished effects",
            **compensation_options(self._start.defaults),
        )

    async def _fail_unless_reset(self, turn: Queued, failed: ActivityError) -> None:
        kind, node = _cause(failed), failed.activity_type
        recorded = await workflow.execute_activity(
            names.RECORD_FAILURE,
            Failure(self._start.thread_id, turn.turn_id, kind, node),
            result_type=Recorded,
            summary=f"{node}: {kind}"[:_NAME_LENGTH],
            **bookkeeping_options(self._start.defaults),
        )
        # All of what the failed run did stands in the history of one that Reset made of it, so that has to follow it to
        # the end; only there it may go another way.
        if recorded.compensate:
            await self._compensate(turn, continued=True)
        # To reset a run ends the one that the thread has now; whatever that one carried would be left behind.
        await self._hand_over(
            recorded.run_id, orphans=kind in (names.SUPERSEDED, names.UNDONE, names.NOT_FOUND)
        )
        if recorded.run_id not in (workflow.info().run_id, *self._tried_again):
            self._tried_again.append(recorded.run_id)
            return
        await self._call_webhook(turn)
        self._turn = None
        await workflow.wait_condition(workflow.all_handlers_finished)
        raise ApplicationError(f"{node} failed: {kind}", type=names.TURN_FAILED, non_retryable=True)

    async def _hand_over(self, run_id: str, *, orphans: bool) -> None:
        """Passes the queue on: this run must end as Failed, and a failed run cannot continue as new."""
        while self._queue or orphans:
            queue, self._queue = tuple(self._queue), []
            await workflow.start_child_workflow(
                names.HANDOVER_WORKFLOW,
                HandOver(self._start.thread_id, run_id, queue, self._start.defaults, orphans),
                id=f"hand-over/{workflow.uuid4()}",
                parent_close_policy=ParentClosePolicy.ABANDON,
            )
            orphans = False

    async def _call_webhook(self, turn: Queued) -> None:
        """Has whoever asked for it told that the turn has ended; nobody waits for that."""
        if not turn.hook:
            return
        info = workflow.info()
        await workflow.start_child_workflow(
            names.WEBHOOK_WORKFLOW,
            Webhook(self._start.thread_id, turn.turn_id, info.start_time.timestamp(), info.run_id),
            id=f"webhook/{turn.turn_id}/{workflow.uuid4()}",
            parent_close_policy=ParentClosePolicy.ABANDON,
            static_summary=f"thread {self._start.thread_id}",
        )

    # ------------------------------------------------------------ steps

    async def _steps(self, turn: Queued) -> None:
        if self._going is not None:
            last, self._going = self._going.last, None
        else:
            last = await self._begin(turn)
            if last.older is not None:
                self._older = last.older
                return
            self._begun = True
        if not last.finished:
            await self._drive(turn, last, ())

    async def _begin(self, turn: Queued) -> Stepped:
        """Begins the turn, together with its first effect if that is known; or finds where it is."""
        fork_from, self._fork_from = self._fork_from, None
        first = None if self._begun or self._again or fork_from is not None else turn.first
        step = Step(
            self._start.thread_id,
            turn.turn_id,
            held=tuple(sorted(self._held)),
            again=self._again,
            begun_in=workflow.info().original_execution_run_id,
            checkpoint=fork_from,
            fork=fork_from is not None,
            first=first.node if first else None,
        )
        if first is None:
            name = names.ADVANCE if self._begun else names.BEGIN
            return await self._execute(name, name.partition(":")[2], step)
        self._running[""] = first.node
        self._show()
        stepped = await self._execute(first.node[:_NAME_LENGTH], first.node, step, first)
        self._running.pop("", None)
        if stepped.older is None and not stepped.gone:
            self._done.append(first.node)
            self._show()
        return stepped

    async def _drive(self, turn: Queued, last: Stepped, branch: TaskPath) -> None:
        """Runs what is in `branch` until nothing more wants to start there (I6).

        One effect goes on by itself to the next frontier. Several part into branches, each of which goes on
        until it has nothing more to run; then one `advance` finds all their writes.
        """
        limits = (branch,) if branch else ()
        while True:
            self._held.update(last.interrupted)
            frontier = [e for e in last.frontier if e.id not in self._held]
            if not frontier:
                return
            if not branch and workflow.info().is_continue_as_new_suggested():
                self._going = Going(turn, last, tuple(sorted(self._held)))
                return
            if len(frontier) == 1:
                last = await self._step(turn, frontier, limits, last.checkpoint)
                continue
            level = _common(frontier)
            parts: dict[str, list[Effect]] = {}
            for effect in frontier:
                parts.setdefault(effect.path[level], []).append(effect)
            chunks = _chunks(level, list(parts.values()), self._limit)
            await _all([self._part(turn, part, last.checkpoint) for part in chunks])
            held = tuple(sorted(self._held))
            step = Step(
                self._start.thread_id, turn.turn_id, branches=limits, held=held, checkpoint=last.checkpoint
            )
            last = await self._execute(names.ADVANCE, "advance", step)

    @property
    def _limit(self) -> int:
        return self._start.defaults.parallel

    async def _part(self, turn: Queued, part: tuple[int, list[list[Effect]]], checkpoint: str | None) -> None:
        level, groups = part
        if len(groups) > 1:  # a chunk of a wide fan-out: plain effects of one node
            effects = [e for group in groups for e in group]
            last = await self._step(turn, effects, tuple(e.path for e in effects), checkpoint)
            self._held.update(last.interrupted)
            return
        effects = groups[0]
        first = Stepped(tuple(effects), checkpoint=checkpoint)
        await self._drive(turn, first, effects[0].path[: level + 1])

    async def _step(
        self,
        turn: Queued,
        effects: Sequence[Effect],
        limits: tuple[TaskPath, ...],
        checkpoint: str | None,
    ) -> Stepped:
        step = Step(
            self._start.thread_id,
            turn.turn_id,
            tuple(e.id for e in effects),
            limits,
            tuple(sorted(self._held)),
            checkpoint=checkpoint,
        )
        one = effects[0]
        label = one.label if len(effects) == 1 else f"{one.label} and {len(effects) - 1} more"
        self._running[one.id] = label
        self._show()
        # No workflow call in a `finally`: one would also run when the worker drops this run from its cache.
        stepped = await self._execute(one.node[:_NAME_LENGTH], label, step, one)
        self._running.pop(one.id, None)
        self._done.append(label)
        self._show()
        return stepped

    async def _execute(
        self, name: str, summary: str, step: Step, effect: Effect | First | None = None
    ) -> Stepped:
        stepped = await workflow.execute_activity(
            name,
            step,
            result_type=Stepped,
            summary=summary[:_NAME_LENGTH],
            **activity_options(self._start.defaults, effect.options if effect else None),
        )
        self._gone = self._gone or stepped.gone
        if stepped.taken_back:
            self._rolling_back = True
            raise asyncio.CancelledError
        if stepped.moved_on:
            assert step.checkpoint is not None
            raise _MovedOn(step.checkpoint)
        if self._stopping and not stepped.finished:
            # The node ended before it heard of the cancel, or returned all the same: what it did is kept.
            raise asyncio.CancelledError
        return stepped

    def _show(self) -> None:
        running = ", ".join(self._running.values()) or "—"
        workflow.set_current_details(
            f"**running**: {running}\n\n**done**: {len(self._done)}\n\n**queued**: {len(self._queue)}"
        )


class _MovedOn(Exception):
    """A step of a run that Reset made belongs to a checkpoint that the thread is past."""

    def __init__(self, checkpoint: str) -> None:
        super().__init__(checkpoint)
        self.checkpoint = checkpoint


def _cause(failed: ActivityError) -> str:
    cause = failed.cause
    if isinstance(cause, ApplicationError):
        return cause.type or "error"
    return type(cause).__name__ if cause is not None else "error"


def _common(frontier: Sequence[Effect]) -> int:
    """Returns how many leading task ids all paths share."""
    paths = [e.path for e in frontier]
    level = 0
    while all(len(p) > level + 1 and p[level] == paths[0][level] for p in paths):
        level += 1
    return level


def _chunks(level: int, groups: list[list[Effect]], limit: int) -> list[tuple[int, list[list[Effect]]]]:
    """Puts plain effects of one node together when there are more groups than `limit`."""
    if len(groups) <= limit:
        return [(level, [group]) for group in groups]
    size = -(-len(groups) // limit)
    chunks: list[tuple[int, list[list[Effect]]]] = []
    plain: dict[str, list[list[Effect]]] = {}
    for group in groups:
        effect = group[0]
        if len(group) == 1 and len(effect.path) == level + 1:
            plain.setdefault(effect.node, []).append(group)
        else:
            chunks.append((level, [group]))
    for same in plain.values():
        chunks.extend((level, same[i : i + size]) for i in range(0, len(same), size))
    return chunks


async def _outlast(coro: Coroutine[Any, Any, T]) -> T:
    """Carries an ending through although the workflow is cancelled meanwhile: half of it would leave a turn open."""
    task = asyncio.create_task(coro)
    while True:
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.done():
                raise


async def _all(branches: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Waits for all; when one fails the others are cancelled and waited for, as LangGraph does with siblings."""
    tasks = [asyncio.create_task(branch) for branch in branches]
    try:
        await asyncio.gather(*tasks)
    except (Exception, asyncio.CancelledError):
        # Not GeneratorExit: a worker that drops this run from its cache closes its coroutines.
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
