"""Owns how often a process looks for garbage in everything that it holds, which stops every turn of it meanwhile.

A hundred answers that stream hold a million objects; Python would look through all of them whenever a quarter has been
added, for up to half a second. What the young generations collect, nearly all garbage, is collected as always.
"""

from __future__ import annotations

import gc
import time
from typing import Any, Final

_SHARE: Final = 500.0
"""A full collection is followed by the next one after so many times what it took, at the earliest."""

_NEVER: Final = 1_000_000


class _Seldom:
    """Called by Python before and after each collection."""

    def __init__(self) -> None:
        self._young, self._middle, self._old = gc.get_threshold()
        self._began = 0.0
        self._next_at = 0.0

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        if info["generation"] == 2:
            if phase == "start":
                self._began = time.monotonic()
            else:
                now = time.monotonic()
                self._next_at = now + _SHARE * (now - self._began)
                gc.set_threshold(self._young, self._middle, _NEVER)
        elif self._next_at and phase == "stop" and time.monotonic() >= self._next_at:
            self._next_at = 0.0
            gc.set_threshold(self._young, self._middle, self._old)


def collect_seldom() -> None:
    """Keeps what was made so far out of every collection, and full ones to a fifth of a percent of the time."""
    gc.freeze()
    if not any(isinstance(one, _Seldom) for one in gc.callbacks):
        gc.callbacks.append(_Seldom())
