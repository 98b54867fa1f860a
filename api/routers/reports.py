"""Routes for operators: abandoned work and the journal of effects.

They come before those of `api/routers/threads.py`, which would take "abandoned" for a thread's id.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from adapter.store import reports, requests
from api.access import AccessDep
from api.deps import PartsDep, ThreadId, answer, pagination
from api.schemas.threads import Limit, Offset
from api.shapes import abandoned_json, effects_json

router = APIRouter(prefix="/threads", tags=["reports"])


@router.get("/abandoned")
async def abandoned(
    parts: PartsDep,
    access: AccessDep,
    limit: Annotated[Limit, Query()] = 50,
    offset: Annotated[Offset, Query()] = 0,
) -> Response:
    """Returns threads whose last run failed or was cancelled, with the effects it had done, the newest first."""
    rows = await reports.abandoned(parts.pool, only=access.only, limit=limit + 1, offset=offset)
    page = rows[:limit]
    return answer(abandoned_json(page), pagination(offset, len(page), more=len(rows) > limit))


@router.get("/{thread_id}/effects")
async def effects(parts: PartsDep, thread_id: ThreadId, unsettled: bool = False) -> Response:
    """Returns the journal of the thread's effects, the oldest first; or only those of unknown outcome."""
    await requests.get_thread(parts.pool, thread_id)
    return answer(effects_json(await requests.list_effects(parts.pool, thread_id, unsettled=unsettled)))
