"""Owns supervised heartbeats: an activity beats by itself as long as its event loop runs.

So `heartbeat_timeout` detects a lost worker and never kills a slow node (FR-14). Cancellation arrives in the
answer to a heartbeat; a notice from the API makes the attempt beat at once instead of at its next interval.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import random
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field

from temporalio import activity

from activities.watchdog import Watchdog

log = logging.getLogger("turns")

# After a cancel notice the workflow still has to ask the server for the cancellation: beat a few times.
_BURST_SECONDS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)

# A notice may overtake the attempt that it is for, which then finds it here. Each beat costs Temporal's server a
# transaction, so an attempt that is over before its first interval has none.
_KEPT_SECONDS = 30.0


@dataclass(slots=True)
class Attempts:
    """The attempts that run in this process, by turn, so that a notice finds them.

    Attributes:
        watchdog: looks whether they can beat.
        noticed: turns whose notice is kept for attempts to come, with the time (monotonic) it came at, oldest first.
    """

    watchdog: Watchdog | None = None
    by_turn: dict[str, set[asyncio.Event]] = field(default_factory=dict[str, set[asyncio.Event]])
    noticed: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(map(len, self.by_turn.values()))

    def notice(self, turn_id: str) -> None:
        """Makes the turn's attempts beat at once, and those that begin soon."""
        self._forget()
        self.noticed.pop(turn_id, None)
        self.noticed[turn_id] = time.monotonic()
        for event in self.by_turn.get(turn_id, ()):
            event.set()

    def begins(self, turn_id: str) -> asyncio.Event:
        """Returns what a notice for an attempt that begins will set, or has set."""
        event = asyncio.Event()
        self.by_turn.setdefault(turn_id, set()).add(event)
        if self.noticed:
            self._forget()
            if turn_id in self.noticed:
                event.set()
        return event

    def ends(self, turn_id: str, event: asyncio.Event) -> None:
        """Forgets an attempt."""
        self.by_turn[turn_id].discard(event)
        if not self.by_turn[turn_id]:
            del self.by_turn[turn_id]

    def _forget(self) -> None:
        late = time.monotonic() - _KEPT_SECONDS
        for turn_id in [turn_id for turn_id, at in self.noticed.items() if at < late]:
            del self.noticed[turn_id]


@asynccontextmanager
async def beating(attempts: Attempts | None = None, turn_id: str = "") -> AsyncGenerator[None]:
    """Beats until the body ends; an error of the body wins over one of a beat, which surfaces otherwise.

    Args:
        attempts: where a notice for the turn finds this attempt; none for an activity that no notice is for.
        turn_id: the turn.
    """
    timeout = activity.info().heartbeat_timeout
    if timeout is None:
        yield
        return
    attempts = attempts or Attempts()
    noticed = attempts.begins(turn_id)
    beats = asyncio.create_task(_beat(timeout.total_seconds() / 3, noticed))
    try:
        with attempts.watchdog.attempt(timeout.total_seconds()) if attempts.watchdog else nullcontext():
            yield
    except asyncio.CancelledError:
        info = activity.info()
        log.info("%s attempt %d of %s stopped", info.activity_type, info.attempt, info.workflow_id)
        raise
    finally:
        failed = beats.done() and not beats.cancelled() and beats.exception()
        beats.cancel()
        attempts.ends(turn_id, noticed)
    if failed:
        raise failed


def beat_from_anywhere() -> Callable[[], None]:
    """Returns what makes the running activity beat, whichever thread calls it and in whatever context."""
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()

    def beat() -> None:
        loop.call_soon_threadsafe(activity.heartbeat, context=context)

    return beat


async def _beat(interval: float, noticed: asyncio.Event) -> None:
    while True:
        try:
            # Attempts that began together do not beat together: each beat is a transaction of Temporal's.
            async with asyncio.timeout(interval * random.uniform(0.6, 1.0)):  # noqa: S311
                await noticed.wait()
        except TimeoutError:
            activity.heartbeat()
            continue
        noticed.clear()
        for wait in (0.0, *_BURST_SECONDS):
            await asyncio.sleep(wait)
            activity.heartbeat()
