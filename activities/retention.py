"""Owns the activity that deletes old events, in batches that each are a short transaction.

A turn's row stays: its outcome, its place in the thread and its key are told for ever.
"""

from __future__ import annotations

import logging

from temporalio import activity

from activities.failures import translate
from adapter.store.pool import Pool, fetch_one
from workflows import names

log = logging.getLogger("turns")

_SECONDS_A_DAY = 86_400.0


class RetentionActivities:
    """The pruning activity of one worker process.

    Args:
        pool: PostgreSQL.
        days: how long a turn's events are kept after it ended; 0 keeps them for ever.
        turns: at most so many turns in one batch.
        events: at most so many events in one batch.
    """

    def __init__(self, pool: Pool, *, days: float, turns: int = 200, events: int = 5000) -> None:
        self._pool = pool
        self._age_seconds = days * _SECONDS_A_DAY
        self._batch = {"turns": turns, "events": events}

    @activity.defn(name=names.PRUNE)
    async def prune(self) -> int:
        """Deletes events until none is too old; returns how many."""
        if not self._age_seconds:
            return 0
        deleted = 0
        while True:
            try:
                batch = await fetch_one(
                    self._pool, "prune_events", age_seconds=self._age_seconds, **self._batch
                )
            except Exception as exc:
                raise translate(exc) from None
            assert batch is not None
            if not (batch["events"] or batch["turns"]):
                break
            deleted += batch["events"]
            activity.heartbeat(deleted)
        if deleted:
            log.info("%d events of turns that ended long ago were deleted", deleted)
        return deleted
