"""Routes about several runs at a time: cancel many, start a batch of stateless ones."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Depends
from starlette.responses import Response

from adapter.errors import NotFound
from adapter.run_form import run_json
from adapter.store import stops
from api.accept import accept, assistant_of, check_webhook, stateless_thread_id
from api.access import Access, AccessDep
from api.bodies import BodyOf
from api.deps import PartsDep, answer
from api.schemas.runs import RunBatch, RunCreate, RunsCancel

router = APIRouter(prefix="/runs", tags=["runs"])

_PAGE = 100
_AT_A_TIME = 10
_FIRST = "00000000-0000-0000-0000-000000000000"


@router.post("/cancel", status_code=204)
async def cancel_many(
    parts: PartsDep,
    access: AccessDep,
    body: Annotated[RunsCancel, Depends(BodyOf(RunsCancel))],
    action: Literal["interrupt", "rollback"] = "interrupt",
) -> Response:
    """Stops runs, or takes them back; does not wait until they have stopped."""
    turnstile = asyncio.Semaphore(_AT_A_TIME)

    async def cancel(thread_id: str, run_id: str) -> None:
        async with turnstile:
            await parts.gateway.cancel(thread_id, run_id, roll_back=action == "rollback")

    found, after = 0, _FIRST
    while True:
        page = await stops.turns_to_cancel(
            parts.pool,
            statuses=body.statuses,
            thread_id=None if body.thread_id is None else str(body.thread_id),
            turn_ids=None if body.run_ids is None else [str(run_id) for run_id in body.run_ids],
            after=after,
            limit=_PAGE,
            only=access.only,
        )
        await asyncio.gather(*(cancel(str(row["thread_id"]), str(row["turn_id"])) for row in page))
        found += len(page)
        if len(page) < _PAGE:
            break
        after = str(page[-1]["turn_id"])
    if not found:
        raise NotFound("No runs found to cancel.")
    return Response(status_code=204)


@router.post("/batch")
async def batch(
    parts: PartsDep, access: AccessDep, body: Annotated[RunBatch, Depends(BodyOf(RunBatch))]
) -> Response:
    """Starts stateless runs and waits for none of them; nothing is started if one of them cannot be."""
    asked: list[tuple[Access, RunCreate]] = []
    for run in body.runs:
        one = access.again()
        asked.append((one, await one.with_body(run)))
    for one, run in asked:
        check_webhook(parts, run)
        await assistant_of(parts, one, run.assistant_id)
    started = [
        await accept(parts, one, stateless_thread_id(None, one.user), run, key=None, temporary=True)
        for one, run in asked
    ]
    return answer([run_json(turn) for turn in started])
