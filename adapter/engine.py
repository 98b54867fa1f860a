"""Owns the running of one turn's graph up to its next frontier, as one activity does it.

`begin` applies the input and runs inline nodes; `step` runs the effects it is allowed to and goes on to the next
frontier; both are the same call with different arguments. It must not know Temporal: the caller brings the claim.
Next: `adapter/gate.py` decides what may start; `adapter/tap.py` what is shown; `adapter/writer.py` what is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langgraph.errors import GraphRecursionError
from langgraph.store.base import BaseStore
from langgraph.types import Command

from adapter import _pregel, faultpoints, shown
from adapter._pregel import AnyGraph, TaskFacts
from adapter.effects import JOURNAL, Journal
from adapter.entry import Entry, Outcome, found
from adapter.errors import NotFound, StaleAttempt, StoreUnavailable
from adapter.event_batches import EventBatches
from adapter.gate import GATE, Gate, RetryLater, Suspended, recursion_message
from adapter.given import config_for
from adapter.graphs import Project
from adapter.parked import Parked, Run
from adapter.plan import Plan
from adapter.plan import plan as make_plan
from adapter.rewind import rewind_subgraphs
from adapter.saver import FencedSaver
from adapter.store import turns
from adapter.store.claims import Claim, Renewal
from adapter.store.pool import Connection, Pool
from adapter.store.turns import FINAL, TurnRow
from adapter.tap import Asked, Tap
from adapter.turn_request import asked as asked_of
from adapter.turn_request import base_config, recursion_limit
from adapter.warm import Warm
from adapter.wire import error_json
from adapter.writer import FencedWriter


class NodeFailed(Exception):
    """A node, or LangGraph itself, ended the turn with an exception; what it was is stored on the turn's row."""

    def __init__(self, error: Exception) -> None:
        super().__init__(type(error).__name__)
        self.error = error


class Engine:
    """Runs turns of a project's graphs; one per worker process.

    Args:
        pool: PostgreSQL.
        store: LangGraph's long-term memory, given to every graph.
        project: the graphs.
        token_delay: see Settings.
        warm_turns: see Settings.
    """

    def __init__(
        self,
        pool: Pool,
        store: BaseStore | None,
        project: Project,
        *,
        token_delay: float,
        warm_turns: int = 0,
    ) -> None:
        _pregel.check()
        self._pool = pool
        self._store = store
        self._project = project
        self._token_delay = token_delay
        self._batches = EventBatches(pool)
        self._warm = Warm(warm_turns)
        self._parked = Parked(warm_turns)

    async def close(self) -> None:
        """Ends the runs that wait for an activity."""
        await self._parked.close()

    async def run(self, turn: TurnRow, entry: Entry) -> Outcome:
        """Enters the graph once.

        Raises:
            NodeFailed: the turn cannot go on; not retryable.
            RetryLater: a node failed and its retry policy says again; retryable after its delay.
            StaleAttempt: a newer attempt took over; not retryable.
            StoreUnavailable: retryable.
        """
        elsewhere = turn.run_id is not None and turn.run_id != entry.run_id
        # A begin that finds its turn begun in its own original run was reset; otherwise it was submitted once more.
        reset = elsewhere and (not entry.first or turn.begun_in == entry.begun_in)
        # Or it failed before its begin could store anything.
        reset = reset or (entry.again and turn.status == "error")
        run = self._parked.take(turn, entry)  # also to end one that is of no use any more
        if turn.undone:
            return Outcome(taken_back=True)
        if turn.status in FINAL and not reset:
            # An earlier attempt ended the turn and died before it could say so.
            return Outcome(finished=True)
        if elsewhere and entry.checkpoint is not None and not entry.fork:
            if entry.checkpoint != await turns.head_checkpoint(self._pool, turn.thread_id):
                return Outcome(moved_on=True)
        if run is None:
            run = Run(entry.run_id)
            run.begin(self._whole(turn, entry, run, reset=reset, elsewhere=elsewhere))
        else:
            self._warm.take(turn.turn_id)
            run.go_on(entry)
        return await self._outcome(turn.turn_id, entry, run)

    async def go_on(self, turn_id: str, entry: Entry) -> Outcome | None:
        """Goes on with the run that waits for this entry, if there is one, whose claim need not be taken before.

        Raises:
            Overtaken: something happened to the thread meanwhile; retryable.
            Exception: as `run`.
        """
        run = self._parked.take_at_once(turn_id, entry)
        if run is None:
            return None
        self._warm.take(turn_id)
        run.go_on(entry, claimed=False)
        return await self._outcome(turn_id, entry, run)

    async def _outcome(self, turn_id: str, entry: Entry, run: Run) -> Outcome:
        try:
            outcome = await run.outcome()
            if entry.first:
                faultpoints.reached(faultpoints.AFTER_INPUT)
        except (RetryLater, StaleAttempt, StoreUnavailable, NotFound):
            self._warm.take(turn_id)
            raise
        except Exception as exc:
            self._warm.take(turn_id)
            # By a writer of its own: the attempt's may be what failed.
            async with self._writer(turn_id, entry.claim, run.renewal) as writer:
                error = error_json(exc)
                await writer.write(lambda conn: turns.set_error(conn, turn_id, error))
            raise NodeFailed(exc) from exc
        if run.waits:
            self._parked.keep(turn_id, run)
        return outcome

    async def _whole(self, turn: TurnRow, entry: Entry, run: Run, *, reset: bool, elsewhere: bool) -> Outcome:
        async with self._writer(turn.turn_id, entry.claim) as writer:
            try:
                return await self._enter(turn, entry, run, writer, reset=reset, elsewhere=elsewhere)
            except Exception:
                # What LangGraph raises may only follow from a write that failed before.
                writer.raise_error()
                raise

    def _writer(self, turn_id: str, claim: Claim, renewal: Renewal | None = None) -> FencedWriter:
        return FencedWriter(
            self._pool,
            claim,
            turn_id,
            token_delay=self._token_delay,
            batches=self._batches,
            renewal=renewal,
        )

    async def _enter(
        self, turn: TurnRow, entry: Entry, run: Run, writer: FencedWriter, *, reset: bool, elsewhere: bool
    ) -> Outcome:
        async with self._project.graph(turn.graph_id, base_config(turn)) as graph:
            limit = recursion_limit(turn, graph)
            told = await shown.announce(self._pool, turn, entry, writer)
            saver, plan = await self._load(turn, entry, writer, limit=limit, reset=reset, elsewhere=elsewhere)
            forks = plan.checkpoint_id is not None and not plan.begins
            # What the turn stopped at belongs to the branch that is left behind.
            noted = frozenset[str]() if plan.begins or forks else turn.held
            asked = asked_of(turn)
            again = entry.attempt > 1 or elsewhere or reset
            earlier = await shown.load(self._pool, turn, entry, writer, asked, told, again=again)

            async def starts(task: str) -> None:
                writer.hurry()
                await earlier.starts(task)

            gate = Gate(
                turn_id=turn.turn_id,
                allow=frozenset(entry.allow),
                branches=entry.branches,
                held=noted if plan.begins or forks else noted | frozenset(entry.held),
                on_breakpoint=_holder(turn.turn_id, noted, writer),
                on_start=starts,
                on_first=_once_stored(saver, writer),
                # The input's checkpoint and the one that follows it come before the first tasks.
                first=None if entry.node is None else (entry.node, plan.stop - limit + 1),
                answers=plan.resume or {},
                attempt=entry.attempt,
                stop=plan.stop + forks,
                limit=limit,
                lineage=saver,
                first_attempt_at=entry.first_attempt_at,
                heartbeat=entry.heartbeat,
            )
            if "" in noted and plan.input is None:
                return await self._stopped(turn, writer)
            tap = Tap(
                writer,
                saver,
                gate,
                asked,
                first=entry.first or forks or plan.begins,
                shown=earlier.keys,
                run_events=earlier.run_events,
            )
            if entry.whole and not _pregel.has_clock(graph):
                gate.on_suspend = self._parking(turn, run, writer, saver, gate, tap)
            stopped = await self._stream(
                graph, turn, plan, writer, saver, gate, tap, asked, earlier.streamed.seen
            )
            if run.discarded:
                return Outcome()
            writer.raise_error()
            if gate.out_of_steps:
                raise GraphRecursionError(recursion_message(limit))
            if stopped and entry.whole and not gate.frontier:
                raise RuntimeError("LangGraph stopped before a node that nobody knows of")
            outcome = await self._conclude(turn, entry, writer, saver, gate, tap)
            if not outcome.finished:
                if entry.whole:
                    self._warm.keep(turn.turn_id, saver.values, _roots(outcome))
                else:
                    self._warm.add(turn.turn_id, saver.values)
            return outcome

    async def _load(
        self, turn: TurnRow, entry: Entry, writer: FencedWriter, *, limit: int, reset: bool, elsewhere: bool
    ) -> tuple[FencedSaver, Plan]:
        """Finds where the turn is and what is to be done there; has it told by the turn's row."""
        fork_from = entry.checkpoint if entry.fork and elsewhere else None
        # A begin that stored no checkpoint of its own (a command, an answer) is begun over: what it brought hangs
        # on the checkpoint before it.
        over = (entry.first and reset and not entry.again) or (
            fork_from is not None and fork_from == turn.base
        )
        over = over and turn.applied
        if over:
            await writer.write(lambda conn: turns.restore_base(conn, turn))
        beside = self._warm.side_by_side(turn.turn_id)
        remembered = self._warm.take if entry.whole else self._warm.share
        values = remembered(turn.turn_id)
        saver = FencedSaver(
            self._pool,
            writer,
            hide=_hidden(entry),
            beside=beside if entry.attempt == 1 else frozenset(),
            values=values if entry.attempt == 1 else None,
        )
        plan = await make_plan(
            self._pool,
            saver,
            turn,
            limit=limit,
            first=entry.first,
            # Once: the next attempt goes on from the fork, which this run has adopted the turn with.
            fork_from=None if over else fork_from,
            over=over,
        )
        moves = elsewhere and plan.checkpoint_id is not None
        if entry.first:
            faultpoints.reached(faultpoints.BEFORE_INPUT)
        saver.carries(plan.origin, _on_first_write(turn, entry, plan, adopts=moves))
        if plan.begins:
            await self._start(turn, entry, plan, writer, over=over)
        if elsewhere and not moves:
            await writer.write(lambda conn: turns.adopt(conn, turn, entry.run_id, rewound=False))
        return saver, plan

    async def _start(
        self, turn: TurnRow, entry: Entry, plan: Plan, writer: FencedWriter, *, over: bool
    ) -> None:
        """Stores that the turn runs, together with its input's checkpoint, if that is what it brings."""
        start = turns.Start(
            plan.origin, plan.resume, plan.stop, entry.run_id, entry.begun_in, plan.base, over
        )
        storing = writer.queue(lambda conn: turns.start(conn, turn, start))
        if plan.input is None or isinstance(plan.input, Command):
            await storing.done

    async def _stream(
        self,
        graph: AnyGraph,
        turn: TurnRow,
        plan: Plan,
        writer: FencedWriter,
        saver: FencedSaver,
        gate: Gate,
        tap: Tap,
        asked: Asked,
        seen: set[int | str],
    ) -> bool:
        """Runs the graph; returns whether it stopped at a node that this activity may not run."""
        config = config_for(turn, plan, tap, asked, seen, store=self._store)
        gate_token = GATE.set(gate)
        journal = Journal(
            writer=writer,
            thread_id=turn.thread_id,
            origin=plan.origin,
            loop=asyncio.get_running_loop(),
        )
        journal_token = JOURNAL.set(journal)
        run = _pregel.copy_graph(graph, checkpointer=saver, store=self._store)
        try:
            async for _ in run.astream(
                plan.input,
                config,
                context=turn.request.get("context"),
                stream_mode=[],
                interrupt_before=turn.request.get("interrupt_before") or None,
                interrupt_after=turn.request.get("interrupt_after") or None,
            ):
                pass  # everything comes through the tap
            return False
        except Suspended:
            return True
        finally:
            await gate.close()
            GATE.reset(gate_token)
            JOURNAL.reset(journal_token)

    def _parking(
        self, turn: TurnRow, run: Run, writer: FencedWriter, saver: FencedSaver, gate: Gate, tap: Tap
    ) -> Callable[[Sequence[TaskFacts]], Awaitable[bool]]:
        """Returns what waits for the activity of an effect that is the only thing that can go on."""
        once_stored = _once_stored(saver, writer)

        async def park(path: Sequence[TaskFacts]) -> bool:
            alone = all(
                tap.alone(task.parent_ns, task.task_id) and saver.serves(task.parent_ns) for task in path
            )
            if not alone:
                return False
            try:
                await asyncio.sleep(0)  # a sibling that has just ended queues its writes
                for task in path:
                    await once_stored(task)
                await writer.drain()
            except Exception:
                return False  # the writer knows, and whoever runs this asks it
            self._warm.keep(turn.turn_id, saver.values)
            return await run.park(found(gate, saver), path[-1].task_id, gate, writer)

        return park

    async def _conclude(
        self, turn: TurnRow, entry: Entry, writer: FencedWriter, saver: FencedSaver, gate: Gate, tap: Tap
    ) -> Outcome:
        if gate.frontier or not entry.whole:
            await writer.drain()
            return found(gate, saver)
        if not tap.stopped_at_interrupt and saver.last_step + 1 > gate.stop:
            # LangGraph counts per entry; a turn that ends exactly at its limit is an error there, too.
            raise GraphRecursionError(recursion_message(gate.limit))
        waits = tap.stopped_at_interrupt
        interrupts = tap.questions() if waits else {}
        if tap.run_events is not None:
            tap.run_events.end()
        faultpoints.reached(faultpoints.BEFORE_END)
        # Goes with what the last nodes have stored and shown, if that is not under way.
        await writer.finish(
            lambda conn: turns.finish(
                conn,
                turn.turn_id,
                status="success",
                thread_status="interrupted" if waits else "idle",
                interrupts=interrupts,
                held=True,
            ),
            first=lambda conn: turns.hold_thread(conn, turn.turn_id),
        )
        return Outcome(interrupted=tuple(sorted(gate.interrupted)), finished=True)

    async def _stopped(self, turn: TurnRow, writer: FencedWriter) -> Outcome:
        """Ends a turn whose earlier attempt stopped at a breakpoint of the root graph; entering would pass it."""
        await writer.write(
            lambda conn: turns.finish(conn, turn.turn_id, status="success", thread_status="interrupted")
        )
        return Outcome(finished=True)


def _roots(outcome: Outcome) -> frozenset[str]:
    """Returns the tasks of the root graph that go on."""
    return frozenset((*effect.within, effect.task_id)[0] for effect in outcome.frontier)


def _hidden(entry: Entry) -> tuple[str, frozenset[str]] | None:
    """Returns what to hide in the root graph; in a subgraph the gate says so when it is entered."""
    roots = frozenset(branch[0] for branch in entry.branches if len(branch) == 1)
    return ("", roots) if roots else None


def _holder(turn_id: str, noted: frozenset[str], writer: FencedWriter) -> Callable[[str], Awaitable[None]]:
    """Returns what stores that a task stopped at a static breakpoint, unless that is noted."""

    async def hold(task_id: str) -> None:
        if task_id not in noted:
            await writer.write(lambda conn: turns.hold(conn, turn_id, task_id))

    return hold


def _once_stored(saver: FencedSaver, writer: FencedWriter) -> Callable[[TaskFacts], Awaitable[None]]:
    """Returns what waits until the checkpoint that a task starts from is stored, which LangGraph does meanwhile."""

    async def wait(task: TaskFacts) -> None:
        ns, checkpoint_id = task.parent_ns, task.parent_checkpoint_id
        head = saver.head(ns)
        if head is None or head.checkpoint_id != checkpoint_id:
            await writer.stored(("checkpoint", ns, checkpoint_id))

    return wait


def _on_first_write(turn: TurnRow, entry: Entry, plan: Plan, *, adopts: bool) -> Callable[[Connection], Any]:
    """Returns what is stored together with an entry's first checkpoint or writes."""

    async def note(conn: Connection) -> None:
        if adopts:
            await turns.adopt(conn, turn, entry.run_id, rewound=not plan.begins)
        if not turn.applied:
            await turns.mark_applied(conn, turn.turn_id)
        if plan.checkpoint_id is not None:
            await rewind_subgraphs(conn, turn.thread_id, turn.turn_id, plan.checkpoint_id)

    return note


__all__ = ["Engine", "NodeFailed", "RetryLater"]
