"""Owns supervised heartbeats: an activity beats by itself as long as its event loop runs.

So `heartbeat_timeout` detects a lost worker and never kills a slow node (FR-14). Cancellation arrives in the
answer to a heartbeat; a notice from the API makes the attempt beat at once instead of at its next interval.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field

from temporalio import activity

from activities.watchdog import Watchdog

log = logging.getLogger("turns")

# After a cancel notice the workflow still has to ask the server for the cancellation: beat a few times.
_BURST_SECONDS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)

# Soon after the start, for a cancel that was noticed before it. An attempt that is over by then costs nothing.
_FIRST_SECONDS = 0.1


@dataclass(slots=True)
class Attempts:
    """The attempts that run in this process, by turn, so that a notice finds them.

    Attributes:
        watchdog: looks whether they can beat.
    """

    watchdog: Watchdog | None = None
    by_turn: dict[str, set[asyncio.Event]] = field(default_factory=dict[str, set[asyncio.Event]])

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(map(len, self.by_turn.values()))

    def notice(self, turn_id: str) -> None:
        """Makes the turn's attempts beat at once."""
        for event in self.by_turn.get(turn_id, ()):
            event.set()


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
    noticed = asyncio.Event()
    attempts = attempts or Attempts()
    attempts.by_turn.setdefault(turn_id, set()).add(noticed)
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
        attempts.by_turn[turn_id].discard(noticed)
        if not attempts.by_turn[turn_id]:
            del attempts.by_turn[turn_id]
    if failed:
        raise failed


async def _beat(interval: float, noticed: asyncio.Event) -> None:
    pause = min(interval, _FIRST_SECONDS)
    while True:
        try:
            async with asyncio.timeout(pause):
                await noticed.wait()
        except TimeoutError:
            activity.heartbeat()
            pause = interval
            continue
        noticed.clear()
        for wait in (0.0, *_BURST_SECONDS):
            await asyncio.sleep(wait)
            activity.heartbeat()
