"""Owns the deletion of threads with everything of them, after stopping what runs there."""

from __future__ import annotations

from adapter.errors import NotFound
from adapter.store import assistants, requests
from adapter.store.only import Only
from adapter.store.pool import fetch_all
from api.deps import Parts

_AT_A_TIME = 100


async def remove_thread(parts: Parts, thread_id: str) -> None:
    """Deletes a thread; turns under way are told to stop, and write nothing more in any case (I5).

    Raises:
        NotFound: it does not exist.
        Unavailable: a turn is under way and Temporal does not answer.
    """
    for turn in await fetch_all(parts.pool, "open_turns", thread_id=thread_id):
        await parts.gateway.cancel(thread_id, str(turn["turn_id"]))
    await requests.delete_thread(parts.pool, thread_id)


async def remove_threads_of(parts: Parts, assistant_id: str, only: Only) -> None:
    """Deletes those of the threads `only` whose last run was made with an assistant."""
    while found := await assistants.threads(parts.pool, assistant_id, limit=_AT_A_TIME, only=only):
        for thread_id in found:
            try:
                await remove_thread(parts, thread_id)
            except NotFound:
                continue  # somebody else was faster
