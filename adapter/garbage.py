"""Owns how often a process looks for garbage in everything that it holds, which stops every turn of it meanwhile.

A hundred answers that stream hold a million objects; Python would look through all of them whenever a quarter has been
added, for up to half a second. What the young generations collect, nearly all garbage, is collected as always.

Not by `gc.callbacks`: what they run lets other threads in wherever a collection may begin, also amid C code that is not
written for that. `ast.parse`, which LangGraph reads nodes with, fails then before Python 3.11.9.
"""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from collections.abc import Generator
from typing import Final

_SHARE: Final = 500.0
"""A full collection is followed by the next one after so many times what it took, at the earliest."""

_PAUSE_SECONDS: Final = 5.0
"""Between two looks at whether one is due."""

_NEVER: Final = 1_000_000

_found: list[tuple[int, int, int]] = []
"""The thresholds that each one inside `collecting_seldom` found."""


@contextlib.contextmanager
def collecting_seldom() -> Generator[None]:
    """Keeps what was made so far out of every collection, and full ones to a fifth of a percent of the time."""
    gc.freeze()
    _found.append(gc.get_threshold())
    young, middle, old = _found[0]
    gc.set_threshold(young, middle, _NEVER)
    ended = threading.Event()
    # Not a task: a node may block the event loop, and make garbage meanwhile.
    threading.Thread(target=_collect, args=(old, ended), name="garbage", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        usual = _found[0]
        _found.pop()
        if not _found:
            gc.set_threshold(*usual)


def _collect(due: int, ended: threading.Event) -> None:
    took = 0.0
    while not ended.wait(max(_PAUSE_SECONDS, _SHARE * took)):
        took = 0.0
        if gc.get_count()[2] > due:
            began = time.monotonic()
            gc.collect()
            took = time.monotonic() - began
