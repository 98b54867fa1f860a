"""Routes of runs without a thread of the client's: they get one of their own, which goes when they are over."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from adapter.errors import NotFound
from adapter.run_form import run_json
from adapter.store.pool import fetch_one
from api.accept import accept, stateless_thread_id
from api.access import AccessDep
from api.deps import PartsDep, RunId, answer
from api.outcome import waited_for
from api.places import run_place, stateless_place
from api.relay import canceller, start_offset, stream_of
from api.routers.run_streams import LastEventId, Modes, cancels
from api.routers.runs import IdempotencyKey, RunBody
from api.sse import waiting_json

router = APIRouter(prefix="/runs", tags=["stateless runs"])


@router.post("")
async def create(
    parts: PartsDep, access: AccessDep, body: RunBody, idempotency_key: IdempotencyKey = None
) -> Response:
    """Starts a run and does not wait for it."""
    thread_id = stateless_thread_id(idempotency_key, access.user)
    turn = await accept(parts, access, thread_id, body, key=idempotency_key, temporary=True)
    return answer(run_json(turn), stateless_place(str(turn["turn_id"])))


@router.post("/stream")
async def stream(
    parts: PartsDep, access: AccessDep, body: RunBody, idempotency_key: IdempotencyKey = None
) -> Response:
    """Starts a run and streams it."""
    thread_id = stateless_thread_id(idempotency_key, access.user)
    turn = await accept(parts, access, thread_id, body, key=idempotency_key, temporary=True)
    return stream_of(
        parts,
        turn,
        after=0,
        headers=stateless_place(str(turn["turn_id"]), "stream"),
        cancel_on_leave=cancels(parts, body),
    )


@router.post("/wait")
async def wait(
    parts: PartsDep, access: AccessDep, body: RunBody, idempotency_key: IdempotencyKey = None
) -> Response:
    """Starts a run and answers with its outcome."""
    thread_id = stateless_thread_id(idempotency_key, access.user)
    turn = await accept(parts, access, thread_id, body, key=idempotency_key, temporary=True, waits=True)
    run_id = str(turn["turn_id"])
    return waiting_json(
        waited_for(parts, turn),
        headers=run_place(thread_id, run_id, "join"),
        closing=parts.closing,
        on_leave=canceller(parts, thread_id, run_id) if cancels(parts, body) else None,
    )


@router.get("/{run_id}/stream")
async def join_stream(
    parts: PartsDep, run_id: RunId, last_event_id: LastEventId = None, stream_mode: Modes = None
) -> Response:
    """Streams a stateless run from where the client left it: its thread's id is not known there."""
    turn = await fetch_one(parts.pool, "get_turn", turn_id=run_id)
    if turn is None or not turn["request"].get("temporary"):
        raise NotFound("Not Found")
    return stream_of(
        parts,
        turn,
        after=start_offset(turn, last_event_id),
        headers=stateless_place(run_id, "stream"),
        modes=stream_mode or (),
        cancel_on_leave=False,
    )
