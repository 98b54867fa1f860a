"""Owns the activity that ends lifetimes: of threads, one short transaction each, and of the long-term store's items."""

from __future__ import annotations

import logging

from temporalio import activity

from activities.failures import translate
from adapter.errors import Invalid
from adapter.store import thread_prune
from adapter.store.pool import Pool
from workflows import names

log = logging.getLogger("turns")


class ExpiryActivities:
    """The expiry activity of one worker process.

    Args:
        pool: PostgreSQL.
        threads: at most so many threads are looked up at a time.
    """

    def __init__(self, pool: Pool, *, threads: int = 100) -> None:
        self._pool = pool
        self._batch = threads

    @activity.defn(name=names.EXPIRE)
    async def expire(self) -> int:
        """Deletes or reduces threads until none is due; returns how many. A thread that is busy is left alone."""
        ended = 0
        # Still there: they turned busy meanwhile, or were reduced. None is tried twice.
        tried: list[str] = []
        try:
            items = await thread_prune.delete_expired_items(self._pool)
            while due := await thread_prune.expired(self._pool, limit=self._batch, skipped=tried):
                for row in due:
                    thread_id, strategy = str(row["thread_id"]), str(row["ttl_strategy"])
                    done = await self._end(thread_id, strategy)
                    ended += done
                    if not done or strategy != "delete":
                        tried.append(thread_id)
                    activity.heartbeat(ended)
        except Exception as exc:
            raise translate(exc) from None
        if ended or items:
            log.info("%d threads and %d items of the store were past their lifetime", ended, items)
        return ended

    async def _end(self, thread_id: str, strategy: str) -> bool:
        if strategy == "delete":
            return await thread_prune.delete_expired(self._pool, thread_id)
        try:
            return await thread_prune.keep_latest(self._pool, thread_id, expired=True)
        except Invalid as exc:
            log.warning("thread %s keeps its history: %s", thread_id, exc)
            await thread_prune.mark_reduced(self._pool, thread_id)
            return False
