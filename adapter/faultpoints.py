"""Owns named points in production code at which a test may stop or end the process; no-ops unless it says so.

`TURNS_FAULTS=<directory>`, read once. A file there that is named after a point arms it: `kill`, `stop` or `terminate`
(SIGKILL, SIGSTOP, SIGTERM to the process that reaches it), with a number behind it for a later hit than the first one:
`kill 3`. Hits are counted, and the file is taken, over all processes of the directory, so that exactly one acts;
it leaves the note `<point>.taken`, which holds its process id.
"""

from __future__ import annotations

import os
import signal
from itertools import count
from pathlib import Path
from typing import Final

BEFORE_CLAIM: Final = "step.begun"
BEFORE_EFFECT: Final = "effect.before"
AFTER_EFFECT: Final = "effect.acted"
AFTER_JOURNAL: Final = "effect.journaled"
BEFORE_CHECKPOINT: Final = "checkpoint.before"
IN_CHECKPOINT: Final = "checkpoint.inside"
AFTER_CHECKPOINT: Final = "checkpoint.committed"
BEFORE_COMPLETION: Final = "step.committed"
BEFORE_END: Final = "turn.ending"
BEGIN_COMMITTED: Final = "begin.committed"
BEFORE_INPUT: Final = "begin.before"
AFTER_INPUT: Final = "begin.applied"
AFTER_COMPENSATION: Final = "compensation.acted"
IN_FINISH: Final = "finish.before"
IN_FAILURE: Final = "failure.before"
AFTER_FAILURE: Final = "failure.recorded"
IN_HAND_OVER: Final = "handover.before"
AFTER_RECORD: Final = "api.recorded"

_SIGNALS: Final = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "terminate": signal.SIGTERM}
_DIRECTORY = Path(told) if (told := os.environ.get("TURNS_FAULTS")) else None


def reached(point: str) -> None:
    """Does what the point's file says, if this process is told of a directory and the file is in it."""
    if _DIRECTORY is not None:
        _act(_DIRECTORY, point)


def _act(directory: Path, point: str) -> None:
    try:
        action, _, number = (directory / point).read_text().partition(" ")
    except FileNotFoundError:
        return
    if _hit(directory, point) != int(number or 1):
        return
    note = directory / f"{point}.{os.getpid()}"
    note.write_text(str(os.getpid()))
    (directory / point).unlink()
    note.rename(directory / f"{point}.taken")
    os.kill(os.getpid(), _SIGNALS[action])


def _hit(directory: Path, point: str) -> int:
    """Returns which hit this is, from 1: the first number that no other process has made a file of."""
    for number in count(1):
        try:
            os.close(os.open(directory / f"{point}.hit-{number}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            continue
        return number
    raise AssertionError("unreachable")
