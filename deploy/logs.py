"""Owns the shape of log lines: `HH:MM:SS component message` on stderr, one line a record."""

from __future__ import annotations

import logging
import sys
import traceback
from types import TracebackType

OURS = ("activities", "adapter", "api", "deploy", "turns", "workflows")
FRAMES = 6
"""Innermost calls named after an exception: enough to find the node, few enough for one line."""

_ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class LineFormatter(logging.Formatter):
    """Writes one record as one line, an exception's trail included, so that grep sees whole records."""

    def __init__(self, component: str) -> None:
        super().__init__(datefmt="%H:%M:%S")
        self.component = component

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line."""
        message = record.getMessage()
        if record.levelno >= logging.WARNING:
            message = f"{record.levelname.lower()}: {message}"
        if record.exc_info:
            message = f"{message} | {describe(record.exc_info)}"
        line = " / ".join(part.strip() for part in message.splitlines() if part.strip())
        return f"{self.formatTime(record, self.datefmt)} {self.component} {line}"


def describe(exc_info: _ExcInfo) -> str:
    """Returns type, text and the innermost calls of an exception, then the same of its cause."""
    kind, error, trace = exc_info
    if kind is None or error is None:
        return "no exception"
    frames = traceback.extract_tb(trace)[-FRAMES:]
    trail = " < ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    text = f"{kind.__name__}: {error}" + (f" [{trail}]" if trail else "")
    if error.__cause__ is not None:
        cause = error.__cause__
        text = f"{text}, caused by {describe((type(cause), cause, cause.__traceback__))}"
    return text


def setup(component: str) -> None:
    """Sends this process's records to stderr: our packages from INFO on, libraries from WARNING on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(component))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    # The SDK's own line for every failed attempt, with paths; `activities/failures.py` says it in ours.
    logging.getLogger("temporalio.activity").setLevel(logging.ERROR)
    for name in OURS:
        logging.getLogger(name).setLevel(logging.INFO)
    logging.captureWarnings(capture=True)
