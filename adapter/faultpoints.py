"""Owns named points in production code at which a test may end the process; no-ops unless armed.

Armed by the environment of that one process, read once: `TURNS_FAULT=point` and `TURNS_FAULT_FILE=path`. The process is
killed (SIGKILL) the first time it reaches the point; the file notes it, so that its successor, which inherits the
environment, passes.
"""

from __future__ import annotations

import os
import signal
from typing import Final

BEFORE_EFFECT: Final = "effect.before"
AFTER_EFFECT: Final = "effect.acted"
AFTER_JOURNAL: Final = "effect.journaled"
BEFORE_CHECKPOINT: Final = "checkpoint.before"
IN_CHECKPOINT: Final = "checkpoint.inside"
BEFORE_COMPLETION: Final = "step.committed"
BEFORE_END: Final = "turn.ending"
BEGIN_COMMITTED: Final = "begin.committed"
BEFORE_INPUT: Final = "begin.before"
AFTER_INPUT: Final = "begin.applied"
IN_FINISH: Final = "finish.before"
IN_HAND_OVER: Final = "handover.before"

_POINT = os.environ.get("TURNS_FAULT")
_FILE = os.environ.get("TURNS_FAULT_FILE")


def reached(point: str) -> None:
    """Ends the process if it was armed for this point and nobody was ended there before."""
    if point != _POINT or _FILE is None:
        return
    try:
        noted = os.open(_FILE, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return
    os.write(noted, f"{point} {os.getpid()}\n".encode())
    os.close(noted)
    os.kill(os.getpid(), signal.SIGKILL)
