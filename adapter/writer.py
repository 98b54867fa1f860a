"""Owns what one attempt makes durable, in order: checkpoint writes, events and row changes.

Everything an attempt stores goes through one queue and is committed in batches. Each transaction first checks
that the attempt's claim is still the newest (I5). While one batch is under way the next one gathers, so a wide
superstep costs few transactions.

An event that tells of a checkpoint or of a task's result is committed in the same transaction as that checkpoint
or result, never before (I8): after a crash the log shows a step if and only if the step is durable. Tokens and
custom events need nothing and are committed as they come; `adapter/streamed.py` takes them back if need be.
Next: `adapter/saver.py` (checkpoint writes) and `adapter/store/event_log.py` (what readers see).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from adapter import faultpoints
from adapter.cancelling import outlast
from adapter.errors import StaleAttempt, StoreUnavailable
from adapter.event_batches import EventBatches
from adapter.store.claims import Claim, Renewal, assert_claim, renew_claim
from adapter.store.event_log import Event, Need, append_events
from adapter.store.pool import Connection, Pool, ending_blockers, one_trip

Operation = Callable[[Connection], Awaitable[None]]

# An event whose write does not come (no graph is known to do that) is not kept back for longer. Not for less: on a
# machine with too much to do, writes that follow one another take their time, and what is shown before it is stored
# would be shown again by the next attempt.
_NEED_SECONDS = 5.0
# Tokens are gathered for so many times as long as the commit before them took: a busy machine stores them in fewer.
_SHARE = 3.0

# What runs so long without storing anything that somebody may want to see it run takes its claim alone.
_RENEWAL_SECONDS = 0.1


@dataclass(slots=True)
class _Op:
    run: Operation
    provides: Need | None
    first: Operation | None
    done: asyncio.Future[None]


class FencedWriter:
    """The queue of one attempt. Use as an async context manager; leaving it commits what is left.

    After a batch failed every later write fails with the same error: an attempt whose claim is stale, or whose
    database went away, is over.

    Attributes:
        renewal: how the claim is taken with the first transaction; None once it is, and for one that was taken before.
        error: what made a batch fail.
    """

    def __init__(
        self,
        pool: Pool,
        claim: Claim,
        turn_id: str,
        *,
        token_delay: float,
        batches: EventBatches | None = None,
        renewal: Renewal | None = None,
    ) -> None:
        self.claim = claim
        self.turn_id = turn_id
        self.error: BaseException | None = None
        self._pool = pool
        self._batches = batches
        self._token_delay = token_delay
        self._loop = asyncio.get_running_loop()
        self._ops: list[_Op] = []
        self._events: list[Event] = []
        self._stored: set[Need] = set()
        self._awaited: dict[Need, asyncio.Future[None]] = {}
        self._wake = asyncio.Event()
        self._goes_on = asyncio.Event()
        self._goes_on.set()
        self.renewal = renewal
        self._renew_at = 0.0
        self._urgent_at: float | None = None
        self._committed_at = self._loop.time()
        self._streamed_at = 0.0
        self._took = 0.0
        self._committing = False
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> FencedWriter:
        self._task = asyncio.create_task(self._run(), name=f"writer-{self.turn_id}")
        return self

    async def __aexit__(self, exc_type: object, exc: BaseException | None, tb: object) -> None:
        self._closing = True
        self._goes_on.set()
        self._wake.set()
        assert self._task is not None
        # A cancelled attempt still stores what its nodes did, and stores nothing any more when it says that it ended.
        await outlast(self._task)
        if exc is None or isinstance(self.error, StaleAttempt):
            self.raise_error()

    def hold(self) -> None:
        """Stores nothing until `go_on`: what somebody leaves behind may say something when no attempt is running."""
        self._goes_on.clear()

    def go_on(self, claim: Claim, renewal: Renewal | None = None) -> None:
        """Stores under this claim from now on; with a renewal, it is not taken yet."""
        self.claim = claim
        self.renewal = renewal
        self._goes_on.set()
        if renewal is not None:
            self._renew_later()

    def _renew_later(self) -> None:
        self._renew_at = self._loop.time() + _RENEWAL_SECONDS
        self._schedule(_RENEWAL_SECONDS)

    def raise_error(self) -> None:
        """Raises what made a batch fail, if one did.

        LangGraph swallows errors of background writes when a run ends by an exception of its own (as every
        suspended run does), so whoever ran it asks here.
        """
        if self.error is not None:
            raise self.error

    def emit(self, event: Event) -> None:
        """Queues an event, which waits a little for company. Only on the event loop's thread.

        A token that comes first, or after a silence, does not wait. The longer a commit of tokens takes, the more
        tokens share the next one.
        """
        if self.error is not None:
            return
        now = self._loop.time()
        event.deadline = now + _NEED_SECONDS
        self._events.append(event)
        delay = self._token_delay
        if event.task is not None:
            delay = max(0.0, self._streamed_at + max(delay, _SHARE * self._took) - now)
        self._schedule(delay)

    async def write(self, run: Operation, *, provides: Need | None = None) -> None:
        """Queues an operation and waits until the transaction it ran in is committed.

        Raises:
            StaleAttempt: a newer attempt holds the claim; nothing was written.
            StoreUnavailable: the database is not reachable.
        """
        await self.queue(run, provides=provides).done

    async def finish(self, run: Operation, *, first: Operation) -> None:
        """Writes a last operation, together with everything queued so far, events that wait for a write included.

        Args:
            run: the operation.
            first: takes the locks that it needs before anything else in its transaction.

        Raises:
            StaleAttempt: as `write` does.
            StoreUnavailable: as `write` does.
        """
        self._release()
        await self.queue(run, first=first).done

    def queue(
        self,
        run: Operation,
        *,
        provides: Need | None = None,
        first: Operation | None = None,
        linger: float = 0.0,
    ) -> _Op:
        """Queues an operation that a later one shares its transaction with; what is written later is stored after it.

        Args:
            run: the operation.
            provides: what is stored then.
            first: what is to come before anything else in its transaction.
            linger: seconds that it waits for others at most, unless somebody waits for it.

        Raises:
            StaleAttempt: as `write` does, for an operation that was queued earlier.
            StoreUnavailable: likewise.
        """
        self.raise_error()
        op = _Op(run, provides, first, self._loop.create_future())
        self._ops.append(op)
        self._schedule(0.0 if provides in self._awaited else linger)
        return op

    def hurry(self) -> None:
        """Lets nothing that is queued linger."""
        if self._ops:
            self._schedule(0.0)

    async def flush(self) -> None:
        """Waits until what was queued so far is committed, as somebody who is going to read it does.

        Raises:
            StaleAttempt: as `write` does.
            StoreUnavailable: as `write` does.
        """
        if self._ops or self._committing:
            await self.write(_nothing)

    async def stored(self, need: Need) -> None:
        """Waits until a write of this attempt is committed, which may not be queued yet.

        Raises:
            StaleAttempt: as `write` does.
            StoreUnavailable: as `write` does.
        """
        self.raise_error()
        if need not in self._stored:
            self.hurry()
            await self._awaited.setdefault(need, self._loop.create_future())

    async def drain(self) -> None:
        """Waits until everything queued so far is committed, events that wait for a write included."""
        self.raise_error()
        if self._events or self._ops or self._committing or self.renewal is not None:
            self._release()
            await self.write(_nothing)

    def _release(self) -> None:
        for event in self._events:
            event.need = None

    def _schedule(self, delay: float) -> None:
        at = self._loop.time() + delay
        if self._urgent_at is None or at < self._urgent_at:
            self._urgent_at = at
            self._wake.set()

    async def _run(self) -> None:
        while True:
            await self._wait()
            await self._goes_on.wait()
            ops, events = self._cut()
            if ops or events:
                await self._commit(ops, events)
            elif self._closing:
                return
            elif self.renewal is not None and self.error is None:
                await self._renew_in_time()

    async def _wait(self) -> None:
        while not self._closing:
            self._wake.clear()
            if self._urgent_at is None:
                await self._wake.wait()
                continue
            remaining = self._urgent_at - self._loop.time()
            if remaining <= 0:
                break
            try:
                async with asyncio.timeout(remaining):
                    await self._wake.wait()
            except TimeoutError:
                break
        self._urgent_at = None
        # Operations are queued by tasks that LangGraph has just created: let those start first.
        await asyncio.sleep(0)

    def _cut(self) -> tuple[list[_Op], list[Event]]:
        """Takes every operation, and the longest run of events from the front whose writes are stored or taken.

        Only events are kept in order: readers see them, while the writes of one attempt concern different rows.
        """
        ops, self._ops = self._ops, []
        ready = self._stored.union(op.provides for op in ops if op.provides is not None)
        now = self._loop.time()
        end = 0
        for event in self._events:
            late = now >= max(event.deadline, self._committed_at + _NEED_SECONDS)
            if not (event.need is None or event.need in ready or late or self._closing):
                break
            end += 1
        events, self._events = self._events[:end], self._events[end:]
        if self._events:
            self._schedule(self._token_delay)
        return ops, events

    async def _renew_in_time(self) -> None:
        """Takes the claim alone if it is time. Nothing is lost if that fails: what is stored next takes it."""
        left = self._renew_at - self._loop.time()
        if left > 0:
            self._schedule(left)
            return
        try:
            await self._transaction((), ())
        except StoreUnavailable:
            self._renew_later()
        except BaseException as exc:
            self._fail((), exc)
            if not isinstance(exc, Exception):
                raise

    async def _commit(self, ops: Sequence[_Op], events: Sequence[Event]) -> None:
        try:
            if self.error is not None:
                raise self.error
            began = self._loop.time()
            self._committing = True
            if ops or not await self._alone(events):
                await self._transaction(ops, events)
        except BaseException as exc:
            self._fail(ops, exc)
            if not isinstance(exc, Exception):
                raise
            return
        finally:
            self._committing = False
        self._committed_at = self._loop.time()
        if any(event.task is not None for event in events):
            self._streamed_at, self._took = self._committed_at, self._committed_at - began
        provided = {op.provides for op in ops if op.provides is not None}
        self._stored |= provided
        awaited = [self._awaited.pop(need) for need in provided & self._awaited.keys()]
        for done in (*(op.done for op in ops), *awaited):
            if not done.done():
                done.set_result(None)

    def _fail(self, ops: Sequence[_Op], exc: BaseException) -> None:
        self.error = self.error or exc
        for future in (*(op.done for op in ops), *self._awaited.values()):
            if not future.done():
                future.set_exception(exc)
                future.exception()  # LangGraph may have stopped listening

    async def _transaction(self, ops: Sequence[_Op], events: Sequence[Event]) -> None:
        faultpoints.reached(faultpoints.BEFORE_CHECKPOINT)
        with contextlib.ExitStack() as until_stored:
            async with one_trip(self._pool) as conn:
                if self.renewal is None:
                    await assert_claim(conn, self.claim)
                else:
                    until_stored.enter_context(ending_blockers(self._pool, conn))
                    await renew_claim(conn, self.claim, self.renewal, self.turn_id)
                for op in ops:
                    if op.first is not None:
                        await op.first(conn)
                for op in ops:
                    await op.run(conn)
                if events:
                    await append_events(conn, self.turn_id, events)
                faultpoints.reached(faultpoints.IN_CHECKPOINT)
        self.renewal = None
        faultpoints.reached(faultpoints.AFTER_CHECKPOINT)

    async def _alone(self, events: Sequence[Event]) -> bool:
        """Stores events together with those of other turns; returns whether they were."""
        if self._batches is None or self.claim.scope or self.renewal is not None:
            return False
        return await self._batches.append(self.claim, self.turn_id, events)


async def _nothing(_: Connection) -> None:
    return None
