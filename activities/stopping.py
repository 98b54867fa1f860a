"""Owns how an attempt ends that is asked to stop: by its turn, or by a worker that goes away and hands it back.

A cancelled turn waits until its nodes have stopped, however long that takes. A worker that stops waits for its nodes
during the grace period, cancels what is left and gives it a few seconds to stop; then the attempt fails so that
Temporal schedules the next one at once, on another worker, and not when the heartbeats are missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from temporalio import activity

T = TypeVar("T")

STOP_SECONDS: Final = 5.0
"""Seconds that what is left after the grace period gets to stop. An effect under way may end in them."""


class HandedBack(Exception):
    """The worker stops before the attempt is done; another worker takes it on.

    Attributes:
        stopped: whether it runs no more.
    """

    def __init__(self, *, stopped: bool) -> None:
        super().__init__("its worker stops")
        self.stopped = stopped


async def to_its_end(attempt: Coroutine[Any, Any, T], left: set[asyncio.Task[Any]]) -> T:
    """Runs an attempt to its end, whoever asks it to stop meanwhile; returns what it returns.

    Args:
        attempt: what to run.
        left: gets it when it is handed back and does not stop; the process must not wait for it.

    Raises:
        CancelledError: its turn was cancelled, and it has stopped.
        HandedBack: its worker stops.
    """
    running = asyncio.create_task(attempt)
    bound: float | None = None
    while not running.done():
        try:
            async with asyncio.timeout_at(bound):
                await asyncio.wait({running})
        except TimeoutError:
            left.add(running)
            raise HandedBack(stopped=False) from None
        except asyncio.CancelledError:
            if not running.cancelling():
                running.cancel()
            if worker_stops():
                bound = asyncio.get_running_loop().time() + STOP_SECONDS
    if running.cancelled() and worker_stops():
        raise HandedBack(stopped=True)
    return running.result()


def worker_stops() -> bool:
    """Whether the running activity was cancelled because its worker's grace period is over."""
    details = activity.cancellation_details()
    return details is not None and details.worker_shutdown
