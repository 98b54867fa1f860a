"""Owns what a caller who waits for a run is told in the end: its values, its questions or its error."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from psycopg.rows import DictRow

from adapter.errors import PublicError
from adapter.wire import dumps, error_json
from api.deps import Parts
from api.sse import WAITING


async def waited_for(parts: Parts, turn: DictRow) -> AsyncGenerator[bytes]:
    """Yields line breaks until a turn, whose row was just read, has ended, then its outcome."""
    async for ended in parts.streams.until_final(str(turn["turn_id"]), pending=turn["status"] == "pending"):
        if ended is None:
            yield WAITING
            continue
        yield dumps(await _outcome(parts, ended)).encode()
        return
    yield dumps({"__error__": {"error": "NotFound", "message": "Run not found"}}).encode()


async def nothing_after(parts: Parts, turn_id: str) -> AsyncGenerator[bytes]:
    """Yields line breaks until the turn has ended, then an empty object."""
    async for ended in parts.streams.until_final(turn_id):
        if ended is None:
            yield WAITING
    yield b"{}"


async def _outcome(parts: Parts, ended: DictRow) -> Any:
    if ended["status"] == "error":
        return {"__error__": ended["error"]}
    if ended["status"] != "success":
        return {}
    try:
        return await parts.snapshots.outcome(ended)
    except PublicError as exc:  # the answer has begun: its status cannot say so
        return {"__error__": error_json(exc)}
