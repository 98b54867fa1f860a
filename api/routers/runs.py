"""Routes of a thread's runs: start, list, look at, cancel, delete.

Next: `api/accept.py`. The streams of runs are in `api/routers/run_streams.py`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Header, Query
from psycopg.rows import DictRow
from starlette.responses import Response

from adapter.errors import NotFound
from adapter.run_form import run_json
from adapter.store import requests
from api.accept import accept
from api.access import AccessDep
from api.bodies import BodyOf
from api.deps import Parts, PartsDep, RunId, ThreadId, answer, selected
from api.outcome import nothing_after
from api.places import run_place
from api.relay import is_final
from api.schemas.runs import RunCreate
from api.schemas.threads import Limit, Offset
from api.sse import waiting_json

router = APIRouter(prefix="/threads/{thread_id}/runs", tags=["runs"])

IdempotencyKey = Annotated[str | None, Header(alias="Idempotency-Key", max_length=1000)]
RunBody = Annotated[RunCreate, Depends(BodyOf(RunCreate))]


@router.post("")
async def create(
    parts: PartsDep,
    access: AccessDep,
    thread_id: ThreadId,
    body: RunBody,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Starts a run and does not wait for it."""
    turn = await accept(parts, access, thread_id, body, key=idempotency_key)
    return answer(run_json(turn), run_place(thread_id, str(turn["turn_id"])))


@router.get("")
async def list_runs(
    parts: PartsDep,
    thread_id: ThreadId,
    limit: Annotated[Limit, Query()] = 10,
    offset: Annotated[Offset, Query()] = 0,
    status: str | None = None,
    select: Annotated[list[str] | None, Query()] = None,
) -> Response:
    """Returns the thread's runs, the newest first."""
    await requests.get_thread(parts.pool, thread_id)
    turns = await requests.list_turns(parts.pool, thread_id, status=status, limit=limit, offset=offset)
    return answer([selected(run_json(turn), select) for turn in turns])


@router.get("/{run_id}")
async def get(parts: PartsDep, thread_id: ThreadId, run_id: RunId) -> Response:
    """Returns a run."""
    try:
        turn = await requests.get_turn(parts.pool, thread_id, run_id)
    except NotFound:
        raise NotFound("Not Found") from None
    return answer(run_json(turn))


@router.delete("/{run_id}")
async def delete(parts: PartsDep, thread_id: ThreadId, run_id: RunId) -> Response:
    """Deletes a run, after stopping it; what it did to the thread's state stays."""
    turn = await requests.get_turn(parts.pool, thread_id, run_id)
    if not is_final(turn):
        await parts.gateway.cancel(thread_id, run_id)
        await parts.streams.final(run_id)
    await requests.delete_turn(parts.pool, thread_id, run_id)
    return Response(status_code=204)


@router.post("/{run_id}/cancel")
async def cancel(
    parts: PartsDep,
    thread_id: ThreadId,
    run_id: RunId,
    wait: bool = False,
    action: Literal["interrupt", "rollback"] = "interrupt",
) -> Response:
    """Stops a run, or takes it back; with `wait`, answers when that is done."""
    await _open(parts, thread_id, run_id)
    await parts.gateway.cancel(thread_id, run_id, roll_back=action == "rollback")
    if not wait:
        return Response(status_code=202)
    return waiting_json(
        nothing_after(parts, run_id), headers=run_place(thread_id, run_id, "join"), closing=parts.closing
    )


async def _open(parts: Parts, thread_id: str, run_id: str) -> DictRow:
    """Returns a run's row.

    Raises:
        NotFound: there is no such run, or it has ended.
    """
    try:
        turn = await requests.get_turn(parts.pool, thread_id, run_id)
    except NotFound:
        raise NotFound("No runs found to cancel.") from None
    if is_final(turn):
        raise NotFound(
            "No matching runs to cancel. Please verify the thread ID and run IDs are correct, and the runs "
            "haven't been deleted or completed."
        )
    return turn
