"""Owns the end of stateless runs: their threads are deleted once a client had time to fetch the result again."""

from __future__ import annotations

import asyncio
import logging

from adapter.errors import NotFound, StoreUnavailable
from adapter.store import requests
from adapter.store.pool import Pool

log = logging.getLogger("turns.api")

# Long enough for a client whose connection broke at the very end to come back for the result.
KEEP_SECONDS = 60.0
_EVERY_SECONDS = 15.0
_AT_A_TIME = 100


async def delete_for_ever(pool: Pool) -> None:
    """Deletes threads of stateless runs until cancelled; each API process does, and none has to."""
    while True:
        await asyncio.sleep(_EVERY_SECONDS)
        try:
            await delete_ended(pool, older_than_seconds=KEEP_SECONDS)
        except StoreUnavailable as exc:
            log.warning("threads of stateless runs are kept for now: %s", exc)


async def delete_ended(pool: Pool, *, older_than_seconds: float) -> int:
    """Deletes the threads of stateless runs that ended that long ago; returns how many."""
    deleted = 0
    for thread_id in await requests.temporary_threads(pool, age_seconds=older_than_seconds, limit=_AT_A_TIME):
        try:
            await requests.delete_thread(pool, thread_id)
            deleted += 1
        except NotFound:
            pass  # another process was faster
    return deleted
