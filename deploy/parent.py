"""Owns what a process does when the one that started it is gone: it ends at once.

A supervisor that is SIGKILLed cannot stop anybody. A worker it left behind would go on taking turns, and an
API would keep its port from the next start. Nothing is lost by ending without a word: whoever owns a turn's
state takes a vanished worker for granted.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from multiprocessing.connection import wait
from typing import Final

PIPE_VARIABLE: Final = "TURNS_PARENT_PIPE"
ORPHANED: Final = 70
"""Exit code of a process that ended because its parent did (EX_SOFTWARE)."""

_PR_SET_PDEATHSIG: Final = 1


def end_with_parent() -> None:
    """Watches the parent from a thread and ends this process when the parent ends, however it ends.

    The parent holds the other end of a pipe, so its death is an end of file that the kernel delivers even
    after SIGKILL. A process that multiprocessing spawned has such a pipe already.
    """
    pipe = os.environ.pop(PIPE_VARIABLE, None)  # popped: the number means nothing in a child of this process
    spawner = multiprocessing.parent_process()
    if spawner is not None:
        _watch(lambda: wait([spawner.sentinel]))
    elif pipe is not None:
        _watch(lambda: os.read(int(pipe), 1))


def _watch(until_gone: Callable[[], object]) -> None:
    def run() -> None:
        until_gone()
        os._exit(ORPHANED)

    threading.Thread(target=run, name="parent", daemon=True).start()


class Lifeline:
    """The supervisor's end of the pipe that a child of ours watches."""

    def __init__(self) -> None:
        self.child_end, self._our_end = os.pipe()

    def variables(self) -> Mapping[str, str]:
        """Returns what the child must find in its environment."""
        return {PIPE_VARIABLE: str(self.child_end)}

    def started(self) -> None:
        """Closes the child's end here; from now on only the child holds it."""
        os.close(self.child_end)

    def close(self) -> None:
        """Closes our end, which ends a child that is still there."""
        os.close(self._our_end)


def signal_with_parent(death: signal.Signals) -> Callable[[], None] | None:
    """Returns a `preexec_fn` that has the kernel send `death` to a foreign program when its parent dies.

    Linux only; elsewhere a foreign program outlives a supervisor that was SIGKILLed, and the next start says
    which port it keeps busy.
    """
    if sys.platform != "linux":
        return None
    # Loaded here and not in the child: between fork and exec nothing may take a lock.
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def arrange() -> None:
        prctl(_PR_SET_PDEATHSIG, int(death), 0, 0, 0)
        if os.getppid() != parent:  # it died before the call above took effect
            os._exit(ORPHANED)

    return arrange
