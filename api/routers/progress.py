"""Routes that tell how far a thread's turn is."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from adapter.errors import NotFound, StoreUnavailable
from adapter.store import requests
from adapter.store.pool import fetch_all
from adapter.wire import dumps
from api.deps import Parts, PartsDep, ThreadId, answer
from api.errors import Unavailable
from api.sse import HEARTBEAT, event_source, frame

router = APIRouter(prefix="/threads/{thread_id}/progress", tags=["progress"])

# A turn that streams tokens changes all the time; Temporal is not asked more often than this.
_AT_MOST_EVERY_SECONDS = 0.25


@router.get("")
async def progress(parts: PartsDep, thread_id: ThreadId) -> Response:
    """Returns what runs, with its attempts, what is done and what waits."""
    return answer(await _progress(parts, thread_id))


@router.get("/stream")
async def progress_stream(parts: PartsDep, thread_id: ThreadId) -> Response:
    """Streams the progress whenever it changes, until the client leaves or the thread is deleted."""
    await requests.get_thread(parts.pool, thread_id)
    return event_source(_changes(parts, thread_id), closing=parts.closing)


async def _progress(parts: Parts, thread_id: str) -> dict[str, Any]:
    thread = await requests.get_thread(parts.pool, thread_id)
    turns = await fetch_all(parts.pool, "open_turns", thread_id=thread_id)
    running = [str(turn["turn_id"]) for turn in turns if turn["status"] == "running"]
    told = await parts.gateway.progress(thread_id) if turns else None
    return {
        "thread_id": thread_id,
        "status": thread["status"],
        "run_id": running[0] if running else None,
        "running": [dataclasses.asdict(one) for one in told.running] if told else [],
        "done": told.done if told else [],
        "interrupted": told.interrupted if told else 0,
        "queue": [str(turn["turn_id"]) for turn in turns if turn["status"] == "pending"],
    }


async def _changes(parts: Parts, thread_id: str) -> AsyncGenerator[bytes]:
    shown: dict[str, Any] | None = None
    ids: list[str] = []
    while True:
        with parts.hub.watch(thread_id, *ids) as woken:
            try:
                now = await _progress(parts, thread_id)
            except NotFound:
                return
            except (StoreUnavailable, Unavailable):
                now = shown  # what is not known has not changed
            if now is not None and now != shown:
                yield frame("progress", dumps(now))
                shown = now
            open_turns = [*now["queue"], *filter(None, [now["run_id"]])] if now else []
            if set(open_turns) - set(ids):
                ids = open_turns
                continue  # watch them first, then look again
            ids = open_turns
            try:
                async with asyncio.timeout(parts.settings.sse_heartbeat):
                    await woken.wait()
            except TimeoutError:
                yield HEARTBEAT
        await asyncio.sleep(_AT_MOST_EVERY_SECONDS)
