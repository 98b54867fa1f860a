"""Owns the runs of graphs that wait in a worker between two activities of their turn.

When a single effect is all that can go on, its activity is what happens next, and most likely on this worker: the run
waits for it and goes on where it is, instead of ending and being built anew from PostgreSQL. All that it did is stored
before it waits, so to lose it loses nothing. It is used only by the first attempt of just that effect, in the same run
of the workflow, under a new claim, while the thread's head is the one it stored. In any other case it ends as if the
effect had been suspended, and the graph is entered anew.

An attempt that comes soon cannot have been given up by Temporal yet, so nobody else can have been given the effect: its
claim is taken together with the first thing that it stores, which saves a transaction an effect. One that comes later
claims first, as an entry anew does.
Next: `adapter/engine.py` drives it; `adapter/warm.py` is what an entry anew is made cheaper with.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import OrderedDict
from collections.abc import Coroutine
from typing import Any, Final

from adapter.cancelling import being_cancelled, outlast
from adapter.entry import Entry, Outcome
from adapter.gate import Gate
from adapter.store.claims import Renewal
from adapter.store.turns import TurnRow
from adapter.writer import FencedWriter

SECONDS: Final = 60.0
"""Seconds that a run waits at most. Its turn may have been cancelled, or gone on elsewhere, which nobody tells it."""


class Run:
    """One run of a turn's graph, which several activities may drive, one after the other.

    Args:
        run_id: Temporal's run that the activities are of.

    Attributes:
        waits: whether it waits for the next activity.
        discarded: whether it ends without any.
    """

    def __init__(self, run_id: str) -> None:
        self.waits = False
        self.discarded = False
        self._run_id = run_id
        self._loop = asyncio.get_running_loop()
        self._told: asyncio.Future[Outcome] = self._loop.create_future()
        self._goes_on: asyncio.Future[bool] = self._loop.create_future()
        self._context = contextvars.copy_context()
        self._went_on = False

    @property
    def renewal(self) -> Renewal | None:
        """How the running activity's claim is taken, if it has not been yet."""
        return self._writer.renewal if self._went_on else None

    def begin(self, whole: Coroutine[Any, Any, Outcome]) -> None:
        """Starts it; `whole` returns the outcome of the activity that is its last."""
        self._task = asyncio.create_task(whole)

    async def outcome(self) -> Outcome:
        """Returns what the running activity is told: that the run waits, or has ended.

        Raises:
            CancelledError: the activity was cancelled, and the run has stopped.
            Exception: whatever ended it.
        """
        while not self._task.done() and not self._told.done():
            try:
                await asyncio.wait((self._task, self._told), return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                if not self._told.done():
                    self._task.cancel()
        return self._told.result() if self._told.done() else self._task.result()

    async def park(self, outcome: Outcome, task_id: str, gate: Gate, writer: FencedWriter) -> bool:
        """Ends the running activity and waits for the one of an effect; returns whether it came."""
        if being_cancelled() or self._task.cancelling():
            return False
        self._awaited = (task_id, outcome.checkpoint)
        self._gate, self._writer = gate, writer
        self._since = time.monotonic()
        self._goes_on = self._loop.create_future()
        self.waits = True
        writer.hold()
        self._told.set_result(outcome)
        return await self._goes_on

    def fits(self, entry: Entry) -> bool:
        """Whether this is the activity that it waits for."""
        return (
            not self._goes_on.done()
            and self._writer.error is None
            and entry.attempt == 1
            and (entry.allow, entry.checkpoint) == ((self._awaited[0],), self._awaited[1])
            and entry.whole
            and not entry.fork
            and entry.run_id == self._run_id
        )

    def fits_turn(self, turn: TurnRow) -> bool:
        """Whether nothing else happened to the thread."""
        return (
            turn.status == "running"
            and not turn.undone
            and turn.run_id == self._run_id
            and turn.head == self._awaited[1]
        )

    def comes_soon(self, entry: Entry) -> bool:
        """Whether Temporal cannot have given up the attempt, which began when this had begun to wait."""
        # Not the loop's time, which stands still within a tick: the process may have been frozen there.
        return time.monotonic() - self._since < entry.timeout / 3

    def go_on(self, entry: Entry, *, claimed: bool = True) -> None:
        """Lets the effect run, for the activity that calls this, under its claim.

        Args:
            entry: the activity's.
            claimed: whether the claim is taken already.
        """
        before, self._told = self._context, self._loop.create_future()
        now = contextvars.copy_context()
        renewal = None if claimed else Renewal(self._writer.claim, self._run_id, self._awaited[1])
        self._writer.go_on(entry.claim, renewal)
        self._went_on = True
        self._gate.goes_on(
            allow=frozenset(entry.allow),
            held=frozenset(entry.held),
            first_attempt_at=entry.first_attempt_at,
            heartbeat=entry.heartbeat,
            context={var: value for var, value in now.items() if before.get(var) is not value},
        )
        self.waits = False
        self._goes_on.set_result(True)

    def discard(self) -> asyncio.Task[Outcome]:
        """Ends it; nobody is told."""
        self.discarded = True
        self.waits = False
        self._writer.go_on(self._writer.claim)  # what is said yet is stored under it, or refused
        if not self._goes_on.done():
            self._goes_on.set_result(False)
        self._task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return self._task


class Parked:
    """The runs that wait in this process, by turn.

    Args:
        most: how many at most; 0 for none.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._runs: OrderedDict[str, tuple[Run, asyncio.TimerHandle]] = OrderedDict()

    def keep(self, turn_id: str, run: Run) -> None:
        """Has a run wait for a while."""
        if turn_id in self._runs:  # of an attempt that this one has replaced
            self._drop(turn_id)
        late = asyncio.get_running_loop().call_later(SECONDS, self._drop, turn_id)
        self._runs[turn_id] = (run, late)
        while len(self._runs) > self._most:
            self._drop(next(iter(self._runs)))

    def take(self, turn: TurnRow, entry: Entry) -> Run | None:
        """Returns the turn's run if it is one for this entry; one that is not is of no use any more."""
        if turn.turn_id not in self._runs:
            return None
        run, _ = self._runs[turn.turn_id]
        if not (run.fits(entry) and run.fits_turn(turn)):
            self._drop(turn.turn_id)
            return None
        return self._pop(turn.turn_id)

    def take_at_once(self, turn_id: str, entry: Entry) -> Run | None:
        """Returns the turn's run if it is one for this entry, which comes too soon to have been replaced."""
        if turn_id not in self._runs:
            return None
        run, _ = self._runs[turn_id]
        return self._pop(turn_id) if run.fits(entry) and run.comes_soon(entry) else None

    async def close(self) -> None:
        """Ends all of them."""
        ending = [self._drop(turn_id) for turn_id in list(self._runs)]
        if ending:
            await outlast(*ending)

    def _drop(self, turn_id: str) -> asyncio.Task[Outcome]:
        return self._pop(turn_id).discard()

    def _pop(self, turn_id: str) -> Run:
        run, late = self._runs.pop(turn_id)
        late.cancel()
        return run
