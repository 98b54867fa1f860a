"""Owns two questions about asyncio's cancelling: am I being cancelled, and how to wait for an end all the same."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any


def being_cancelled() -> bool:
    """Whether the running task was asked to stop."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def outlast(*futures: asyncio.Future[Any]) -> None:
    """Waits until all have ended, however often the waiting task is cancelled; their outcomes are not raised."""
    ended = asyncio.gather(*futures, return_exceptions=True)
    while not ended.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(ended)
