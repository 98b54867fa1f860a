"""Routes of threads."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header
from langgraph.types import StateUpdate
from psycopg.rows import DictRow
from starlette.responses import Response

from adapter.errors import Invalid
from adapter.store import requests
from adapter.store.pool import fetch_all
from api.access import Access, AccessDep
from api.bodies import BodyOf
from api.deps import Parts, PartsDep, ThreadId, answer, checked_uuid, pagination, selected
from api.extract import extracted
from api.schemas.threads import Superstep, ThreadCount, ThreadCreate, ThreadPatch, ThreadSearch
from api.shapes import thread_json
from api.snapshots import Address

router = APIRouter(prefix="/threads", tags=["threads"])


@router.post("")
async def create(
    parts: PartsDep, access: AccessDep, body: Annotated[ThreadCreate, Depends(BodyOf(ThreadCreate))]
) -> Response:
    """Creates a thread."""
    thread_id = requests.new_id() if body.thread_id is None else checked_uuid(body.thread_id, "thread")
    supersteps = [_updates(superstep) for superstep in body.supersteps]
    row = await requests.create_thread(
        parts.pool, thread_id, body.metadata, if_exists=body.if_exists, only=access.only
    )
    if supersteps and row["last_seq"] == 0:
        await parts.snapshots.update(thread_id, Address(), supersteps)
        row = await requests.get_thread(parts.pool, thread_id)
    return answer(await _thread(parts, row))


@router.get("/{thread_id}")
async def get(parts: PartsDep, thread_id: ThreadId) -> Response:
    """Returns a thread with its latest values."""
    return answer(await _thread(parts, await requests.get_thread(parts.pool, thread_id)))


@router.patch("/{thread_id}")
async def patch(
    parts: PartsDep,
    access: AccessDep,
    thread_id: ThreadId,
    body: Annotated[ThreadPatch, Depends(BodyOf(ThreadPatch))],
    prefer: Annotated[str, Header()] = "",
) -> Response:
    """Merges metadata."""
    row = await requests.update_thread(parts.pool, thread_id, body.metadata, access.only)
    if "return=minimal" in prefer:
        return Response(status_code=204)
    return answer(await _thread(parts, row))


@router.delete("/{thread_id}")
async def delete(parts: PartsDep, thread_id: ThreadId) -> Response:
    """Deletes a thread with everything of it; a turn under way is stopped."""
    await requests.get_thread(parts.pool, thread_id)
    for turn in await fetch_all(parts.pool, "open_turns", thread_id=thread_id):
        await parts.gateway.cancel(thread_id, str(turn["turn_id"]))
    await requests.delete_thread(parts.pool, thread_id)
    return Response(status_code=204)


@router.post("/search")
async def search(
    parts: PartsDep, access: AccessDep, body: Annotated[ThreadSearch, Depends(BodyOf(ThreadSearch))]
) -> Response:
    """Returns threads whose metadata contains the given, the last changed first."""
    rows = await _search(parts, access, body)
    page, more = rows[: body.limit], len(rows) > body.limit
    needs_values = not body.select or "values" in body.select or bool(body.extract)
    found = await asyncio.gather(*(_thread(parts, row, needs_values=needs_values) for row in page))
    threads: list[dict[str, Any]] = []
    for thread in found:
        shown = selected(thread, body.select)
        if body.extract:
            shown = {**shown, "extracted": extracted(thread, body.extract)}
        threads.append(shown)
    return answer(threads, pagination(body.offset, len(page), more=more))


@router.post("/count")
async def count(
    parts: PartsDep, access: AccessDep, body: Annotated[ThreadCount, Depends(BodyOf(ThreadCount))]
) -> Response:
    """Returns how many threads there are."""
    return answer(
        await requests.count_threads(parts.pool, metadata=body.metadata, status=body.status, only=access.only)
    )


async def _search(parts: Parts, access: Access, body: ThreadSearch) -> list[DictRow]:
    """Returns one row more than asked for, if there is one."""
    limit = body.limit + 1
    if body.ids is None and (body.sort_by, body.sort_order) == ("updated_at", "desc"):
        return await requests.list_threads(
            parts.pool,
            metadata=body.metadata,
            status=body.status,
            limit=limit,
            offset=body.offset,
            only=access.only,
        )
    return await requests.search_threads(
        parts.pool,
        metadata=body.metadata,
        status=body.status,
        ids=None if body.ids is None else [checked_uuid(one, "thread") for one in body.ids],
        sort=body.sort_by,
        ascending=body.sort_order == "asc",
        limit=limit,
        offset=body.offset,
        only=access.only,
    )


async def _thread(parts: Parts, row: DictRow, *, needs_values: bool = True) -> dict[str, Any]:
    return thread_json(row, await parts.snapshots.values(row) if needs_values else None)


def _updates(superstep: Superstep) -> list[StateUpdate]:
    if any(update.command for update in superstep.updates):
        raise Invalid("supersteps with a command are not supported yet")
    return [StateUpdate(update.values, update.as_node) for update in superstep.updates]
