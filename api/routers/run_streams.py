"""Routes that last as long as a run: streaming it, waiting for it, joining it.

Next: `api/relay.py` for streams, `api/outcome.py` for the rest.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from adapter.errors import NotFound
from adapter.store import requests
from api.accept import accept
from api.access import AccessDep
from api.deps import Parts, PartsDep, RunId, ThreadId
from api.outcome import waited_for
from api.places import run_place
from api.relay import canceller, start_offset, stream_of, unknown_run
from api.routers.runs import IdempotencyKey, RunBody
from api.schemas.runs import RunCreate
from api.sse import waiting_json

router = APIRouter(prefix="/threads/{thread_id}/runs", tags=["runs"])

LastEventId = Annotated[str | None, Header(alias="Last-Event-ID")]
Modes = Annotated[list[str] | None, Query()]


@router.post("/stream")
async def stream(
    parts: PartsDep,
    access: AccessDep,
    thread_id: ThreadId,
    body: RunBody,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Starts a run, or finds the one that the same request started, and streams it from its beginning."""
    turn = await accept(parts, access, thread_id, body, key=idempotency_key)
    return stream_of(parts, turn, after=0, cancel_on_leave=cancels(parts, body))


@router.post("/wait")
async def wait(
    parts: PartsDep,
    access: AccessDep,
    thread_id: ThreadId,
    body: RunBody,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Starts a run and answers with its outcome."""
    turn = await accept(parts, access, thread_id, body, key=idempotency_key, waits=True)
    run_id = str(turn["turn_id"])
    return waiting_json(
        waited_for(parts, turn),
        headers=run_place(thread_id, run_id, "join"),
        closing=parts.closing,
        on_leave=canceller(parts, thread_id, run_id) if cancels(parts, body) else None,
    )


@router.get("/{run_id}/stream")
async def join_stream(
    parts: PartsDep,
    thread_id: ThreadId,
    run_id: RunId,
    last_event_id: LastEventId = None,
    stream_mode: Modes = None,
    cancel_on_disconnect: bool = False,
) -> Response:
    """Streams a run that was started before, from where the client left it."""
    try:
        turn = await requests.get_turn(parts.pool, thread_id, run_id)
    except NotFound:
        return unknown_run(parts, thread_id, run_id)
    return stream_of(
        parts,
        turn,
        after=start_offset(turn, last_event_id),
        modes=stream_mode or (),
        cancel_on_leave=cancel_on_disconnect,
    )


@router.get("/{run_id}/join")
async def join(
    parts: PartsDep, thread_id: ThreadId, run_id: RunId, cancel_on_disconnect: bool = False
) -> Response:
    """Answers with a run's outcome once it has one."""
    turn = await requests.get_turn(parts.pool, thread_id, run_id)
    return waiting_json(
        waited_for(parts, turn),
        headers=run_place(thread_id, run_id, "join"),
        closing=parts.closing,
        on_leave=canceller(parts, thread_id, run_id) if cancel_on_disconnect else None,
    )


def cancels(parts: Parts, body: RunCreate) -> bool:
    """Whether a client's leaving cancels its run: the request says so, or else the settings."""
    return (body.on_disconnect or parts.settings.on_disconnect) == "cancel"
