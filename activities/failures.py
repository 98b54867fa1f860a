"""Owns the one table of what an activity's failure means to Temporal: again, or not.

No text of an exception goes into Temporal's history: it may quote the conversation (I2). The text is stored on the
turn's row, which the API shows.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.stopping import HandedBack
from adapter.engine import NodeFailed
from adapter.errors import (
    CompensationFailed,
    NotFound,
    Overtaken,
    StaleAttempt,
    StoreUnavailable,
    Superseded,
    TurnsError,
    Undone,
)
from adapter.gate import RetryLater
from adapter.wire import error_json
from workflows import names

log = logging.getLogger("turns.activity")

# An error nobody expected is retried in case it was passing, then ends the turn instead of looping for ever.
_UNEXPECTED_ATTEMPTS = 3

# None at all would be left out of the message, and the retry policy's delay would hold.
_AT_ONCE = timedelta(milliseconds=1)

# The attempt has waited for PostgreSQL already.
_AFTER_OUTAGE = timedelta(seconds=0.2)


def translate(exc: Exception) -> ApplicationError:
    """Returns what the activity raises instead of `exc`."""
    info = activity.info()
    where = f"{info.activity_type} (attempt {info.attempt})"
    if isinstance(exc, HandedBack):
        return ApplicationError("its worker stopped", type=names.WORKER_STOPPED, next_retry_delay=_AT_ONCE)
    if isinstance(exc, RetryLater):
        log.warning("%s: %s, again in %.1f s", where, _text(exc.error), exc.delay_seconds)
        return ApplicationError(
            type(exc.error).__name__,
            type=type(exc.error).__name__,
            next_retry_delay=timedelta(seconds=exc.delay_seconds),
        )
    if isinstance(exc, NodeFailed):
        log.error("%s: %s", where, _text(exc.error))
        return ApplicationError(type(exc.error).__name__, type=type(exc.error).__name__, non_retryable=True)
    if isinstance(exc, Overtaken):
        log.warning("%s: %s", where, exc)
        return ApplicationError("its thread has changed", type="Overtaken", next_retry_delay=_AT_ONCE)
    if isinstance(exc, StaleAttempt):
        log.warning("%s: %s", where, exc)
        return ApplicationError("a newer attempt took over", type=names.STALE_ATTEMPT, non_retryable=True)
    if isinstance(exc, Superseded):
        log.warning("%s: %s", where, exc)
        return ApplicationError("later turns built on this one", type=names.SUPERSEDED, non_retryable=True)
    if isinstance(exc, Undone):
        log.warning("%s: %s", where, exc)
        return ApplicationError("its effects were compensated", type=names.UNDONE, non_retryable=True)
    if isinstance(exc, CompensationFailed):
        log.warning("%s: %s", where, exc)
        return ApplicationError("a compensation failed", type=names.COMPENSATION_FAILED)
    if isinstance(exc, StoreUnavailable):
        log.warning("%s: %s", where, exc)
        return ApplicationError(
            "PostgreSQL is not reachable", type="StoreUnavailable", next_retry_delay=_AFTER_OUTAGE
        )
    final = isinstance(exc, NotFound) or info.attempt >= _UNEXPECTED_ATTEMPTS
    log.error("%s: %s", where, exc, exc_info=None if isinstance(exc, TurnsError) else exc)
    return ApplicationError(type(exc).__name__, type=type(exc).__name__, non_retryable=final)


def _text(exc: BaseException) -> str:
    told = error_json(exc)
    return f"{told['error']}: {told['message']}".splitlines()[0][:300]
