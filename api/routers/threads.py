"""Routes of threads."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header
from langgraph.types import StateUpdate
from psycopg.rows import DictRow
from starlette.responses import Response

from adapter.errors import Conflict, NotFound
from adapter.store import requests, thread_copy, thread_prune
from adapter.turn_request import command_of
from api.access import AccessDep
from api.bodies import BodyOf
from api.deps import Parts, PartsDep, ThreadId, answer, checked_uuid, pagination, selected
from api.extract import extracted
from api.removal import remove_thread
from api.schemas.threads import (
    Superstep,
    ThreadCount,
    ThreadCreate,
    ThreadPatch,
    ThreadPrune,
    ThreadSearch,
    Ttl,
    Update,
)
from api.shapes import thread_json, ttl_json
from api.snapshots import Address
from api.thread_search import count_threads, find_threads

router = APIRouter(prefix="/threads", tags=["threads"])


@router.post("")
async def create(
    parts: PartsDep, access: AccessDep, body: Annotated[ThreadCreate, Depends(BodyOf(ThreadCreate))]
) -> Response:
    """Creates a thread."""
    thread_id = requests.new_id() if body.thread_id is None else checked_uuid(body.thread_id, "thread")
    supersteps = [_updates(superstep) for superstep in body.supersteps]
    row = await requests.create_thread(
        parts.pool,
        thread_id,
        body.metadata,
        if_exists=body.if_exists,
        only=access.only,
        lifetime=_lifetime(body.ttl),
    )
    if supersteps and row["last_seq"] == 0:
        await parts.snapshots.update(thread_id, Address(), supersteps)
        row = await requests.get_thread(parts.pool, thread_id)
    return answer(await _thread(parts, row))


@router.get("/{thread_id}")
async def get(parts: PartsDep, thread_id: ThreadId, include: str = "") -> Response:
    """Returns a thread with its latest values; `include=ttl` adds its lifetime."""
    row = await requests.get_thread(parts.pool, thread_id)
    thread = await _thread(parts, row)
    return answer({**thread, **ttl_json(row)} if "ttl" in include.split(",") else thread)


@router.patch("/{thread_id}")
async def patch(
    parts: PartsDep,
    access: AccessDep,
    thread_id: ThreadId,
    body: Annotated[ThreadPatch, Depends(BodyOf(ThreadPatch))],
    prefer: Annotated[str, Header()] = "",
) -> Response:
    """Merges metadata, and gives the thread a lifetime."""
    row = await requests.update_thread(parts.pool, thread_id, body.metadata, access.only, _lifetime(body.ttl))
    if "return=minimal" in prefer:
        return Response(status_code=204)
    return answer(await _thread(parts, row))


@router.delete("/{thread_id}")
async def delete(parts: PartsDep, thread_id: ThreadId) -> Response:
    """Deletes a thread with everything of it; a turn under way is stopped."""
    await remove_thread(parts, thread_id)
    return Response(status_code=204)


@router.post("/{thread_id}/copy")
async def copy(parts: PartsDep, access: AccessDep, thread_id: ThreadId) -> Response:
    """Copies a thread with its state and history; its runs stay behind."""
    copied = requests.new_id()
    metadata = None
    if access.user is not None:
        # What is read of another's thread becomes one's own.
        original = await requests.get_thread(parts.pool, thread_id)
        metadata = await access.metadata_of_new_thread(copied, original["metadata"])
    row = await thread_copy.copy(parts.pool, thread_id, copied, metadata)
    if row is None:
        raise Conflict(f"Thread with ID {thread_id} not found")
    return answer(await _thread(parts, row))


@router.post("/prune")
async def prune(
    parts: PartsDep, access: AccessDep, body: Annotated[ThreadPrune, Depends(BodyOf(ThreadPrune))]
) -> Response:
    """Deletes threads, or all but their latest checkpoint; tells how many. Those that do not exist do not count."""
    named = {checked_uuid(one, "thread") for one in body.thread_ids}
    thread_ids = await requests.visible_threads(parts.pool, list(named), access.only)
    pruned = 0
    for thread_id in thread_ids:
        if body.strategy == "keep_latest":
            pruned += await thread_prune.keep_latest(parts.pool, thread_id)
            continue
        try:
            await remove_thread(parts, thread_id)
        except NotFound:
            continue
        pruned += 1
    return answer({"pruned_count": pruned})


@router.post("/search")
async def search(
    parts: PartsDep, access: AccessDep, body: Annotated[ThreadSearch, Depends(BodyOf(ThreadSearch))]
) -> Response:
    """Returns threads whose metadata and state contain the given, the last changed first."""
    page, more = await find_threads(parts, body, access.only)
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
    return answer(await count_threads(parts, body, access.only))


async def _thread(parts: Parts, row: DictRow, *, needs_values: bool = True) -> dict[str, Any]:
    return thread_json(row, await parts.snapshots.values(row) if needs_values else None)


def _lifetime(ttl: Ttl | None) -> requests.Lifetime | None:
    return None if ttl is None else ttl.lifetime()


def _updates(superstep: Superstep) -> list[StateUpdate]:
    return [StateUpdate(_said(update), update.as_node) for update in superstep.updates]


def _said(update: Update) -> Any:
    """Returns what a node would have returned: values, or a command."""
    if update.command is None:
        return update.values
    command = update.command.model_dump(exclude_unset=True)
    return command_of({**command, "resume": None}) or update.values
