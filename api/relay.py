"""Owns the relaying of a turn's log as a stream: from which offset, and which events."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Mapping, Sequence

from psycopg.rows import DictRow

from adapter.errors import PublicError, StoreUnavailable
from adapter.store.turns import FINAL
from adapter.wire import dumps
from api.deps import Parts
from api.event_stream import Wanted
from api.places import run_place
from api.sse import HEARTBEAT, LastingResponse, Leave, event_source, frame

log = logging.getLogger("turns.api")
# As streams send them: no sign, no leading zero, no more digits than PostgreSQL counts.
_ID = re.compile("[1-9][0-9]{0,17}")


def stream_of(
    parts: Parts,
    turn: DictRow,
    *,
    after: int,
    headers: Mapping[str, str] | None = None,
    modes: Sequence[str] = (),
    cancel_on_leave: bool,
) -> LastingResponse:
    """Returns a turn's events after an offset, then what comes.

    Args:
        parts: of the process.
        turn: its row.
        after: the last offset that the client has.
        headers: where the client finds the stream again.
        modes: show only these modes' events; none shows all.
        cancel_on_leave: whether the turn is cancelled when the client leaves.
    """
    thread_id, turn_id = str(turn["thread_id"]), str(turn["turn_id"])
    return event_source(
        _frames(parts, turn_id, after, wanted(modes)),
        headers=headers or run_place(thread_id, turn_id, "stream"),
        closing=parts.closing,
        on_leave=canceller(parts, thread_id, turn_id) if cancel_on_leave else None,
    )


def unknown_run(parts: Parts, thread_id: str, run_id: str) -> LastingResponse:
    """Returns a stream that says that there is no such run; clients of streams do not look at the status."""

    async def only() -> AsyncGenerator[bytes]:
        yield frame("error", dumps({"error": "HTTPException", "message": "404: Run not found"}))

    return event_source(only(), headers=run_place(thread_id, run_id, "stream"), closing=parts.closing)


def canceller(parts: Parts, thread_id: str, turn_id: str) -> Leave:
    """Returns what cancels a turn whose client left."""

    async def cancel() -> None:
        try:
            await parts.gateway.cancel(thread_id, turn_id)
        except (PublicError, StoreUnavailable) as exc:
            log.warning("turn %s goes on although its client left: %s", turn_id, exc)

    return cancel


def start_offset(turn: DictRow, last_event_id: str | None) -> int:
    """Returns the offset after which a joining client wants events.

    `-1` is everything, a number is what follows it; without one (or with one that no stream of this turn ever
    sent) only what comes from now on, which is nothing when the turn has ended.
    """
    last: int = turn["last_offset"]
    if last_event_id in ("-1", "0"):
        return 0
    if last_event_id is not None and _ID.fullmatch(last_event_id):
        return min(int(last_event_id), last)
    return last


def wanted(modes: Sequence[str]) -> Wanted | None:
    """Returns the filter of event names for these modes; an error is shown whatever was asked for.

    An empty name is none: the Python SDK sends one when its caller names no mode.
    """
    named = [mode for mode in modes if mode]
    if not named:
        return None
    exact = {"messages" if mode == "messages-tuple" else mode for mode in named if mode != "messages"}
    starts = (*(f"{name}|" for name in exact), *(("messages/",) if "messages" in named else ()))
    return lambda name: name in exact or name == "error" or name.startswith(starts)


def is_final(turn: DictRow) -> bool:
    """Whether the turn has ended."""
    return turn["status"] in FINAL


async def _frames(parts: Parts, turn_id: str, after: int, want: Wanted | None) -> AsyncGenerator[bytes]:
    async for page in parts.streams.follow(turn_id, after, want):
        yield b"".join(frame(e.name, e.data, e.offset) for e in page) or HEARTBEAT
