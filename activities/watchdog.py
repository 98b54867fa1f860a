"""Owns the naming of nodes that keep their event loop: a warning while they do, from a thread of its own.

A node that blocks (a synchronous client in an `async` node) keeps every attempt of its worker from beating. After half
the heartbeat timeout the log says which node it is and where it stands; after the timeout another worker takes its
attempts over, and the blocked one is fenced when it comes back. Code that holds Python's interpreter lock is not
seen: this thread cannot run either.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import logging
import math
import sys
import sysconfig
import threading
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

from adapter.effects import JOURNAL
from adapter.node_threads import NODE

log = logging.getLogger("turns.activity")

PARTS: Final = 8
"""Looks per heartbeat timeout."""

_OURS = Path(__file__).resolve().parent.parent
_NOT_THE_USERS = (
    sysconfig.get_path("stdlib"),
    sysconfig.get_path("purelib"),
    sysconfig.get_path("platlib"),
    str(_OURS / "activities"),
    str(_OURS / "adapter"),
    "<frozen",
)


class Watchdog:
    """Watches the event loop that it is made on, while an attempt runs; without one its thread sleeps."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._changed = threading.Condition()
        # All of it is guarded by `_changed`. Timeouts are in seconds, of the attempts under way.
        self._timeouts: Counter[float] = Counter()
        self._shortest = math.inf  # that the next look is timed by; none is while there are no attempts
        self._over = False

    @contextmanager
    def running(self) -> Generator[None]:
        """Watches until the body ends."""
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()
        try:
            yield
        finally:
            with self._changed:
                self._over = True
                self._changed.notify()

    @contextmanager
    def attempt(self, heartbeat_timeout: float) -> Generator[None]:
        """Has an attempt watched whose heartbeats may fail to appear for so many seconds."""
        with self._changed:
            self._timeouts[heartbeat_timeout] += 1
            if heartbeat_timeout < self._shortest:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._timeouts[heartbeat_timeout] -= 1
                self._timeouts += Counter()  # drops those that are 0

    def _watch(self) -> None:
        while True:
            with self._changed:
                self._shortest = math.inf
                self._changed.wait_for(lambda: self._over or bool(self._timeouts))
                timeout = self._shortest = min(self._timeouts, default=0)
            if self._over:
                return
            self._look(timeout)
            with self._changed:
                if not self._over:
                    self._changed.wait(timeout / PARTS)  # less, when an attempt with a shorter one begins

    def _look(self, timeout: float) -> None:
        """Asks the event loop for a sign of life, and warns when none comes within half the timeout."""
        asked, answered, warned = time.monotonic(), threading.Event(), False
        try:
            self._loop.call_soon_threadsafe(answered.set)
        except RuntimeError:
            return  # it is closed
        while not answered.wait(timeout / PARTS):
            seconds = time.monotonic() - asked
            if seconds > timeout / 2 and not warned:
                warned = True
                self._warn(seconds, timeout)
        if warned:
            log.warning("the event loop runs again, after %.1f s", time.monotonic() - asked)

    def _warn(self, seconds: float, timeout: float) -> None:
        frame = sys._current_frames().get(self._loop_thread)  # pyright: ignore[reportPrivateUsage] - documented
        if frame is None:
            return
        log.warning(
            "%s keeps its event loop, for %.1f s now, at %s; attempts of this worker cannot beat meanwhile, and "
            "another worker takes them over %.0f s after their last heartbeats",
            _who(_context(self._loop)),
            seconds,
            _where(frame),
            timeout,
        )


def _who(context: contextvars.Context | None) -> str:
    node = context.get(NODE) if context is not None else None
    journal = context.get(JOURNAL) if context is not None else None
    if node is None or journal is None:
        return "something that is no node"
    return f'node "{node.label}" of turn {journal.writer.turn_id} on thread {journal.thread_id}'


def _context(loop: asyncio.AbstractEventLoop) -> contextvars.Context | None:
    """Returns the context of the task that runs on the loop; a node's calls and tasks inherit the node's."""
    task = asyncio.current_task(loop)
    get_context = getattr(task, "get_context", None)
    if get_context is not None:
        return get_context()
    # Python 3.11 has no such method, but its collector knows what a task holds: its context, then those of callbacks.
    return next((held for held in gc.get_referents(task) if isinstance(held, contextvars.Context)), None)


def _where(frame: FrameType) -> str:
    """Returns the innermost place in the user's code, or the innermost one of all."""
    at: FrameType | None = frame
    while at is not None and at.f_code.co_filename.startswith(_NOT_THE_USERS):
        at = at.f_back
    at = at or frame
    return f"{at.f_code.co_filename}:{at.f_lineno} in {at.f_code.co_name}"
