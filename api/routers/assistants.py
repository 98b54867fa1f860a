"""Routes of assistants: making them, changing them, and what is told of their graphs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from adapter._pregel import AnyGraph
from adapter.errors import Invalid, NotFound
from adapter.store import assistants as rows
from api.access import AccessDep
from api.bodies import BodyOf
from api.deps import Parts, PartsDep, answer, pagination, selected
from api.drawings import drawing, schemas, subgraph_schemas
from api.removal import remove_threads_of
from api.run_config import assistant_config
from api.schemas.assistants import (
    AssistantCount,
    AssistantCreate,
    AssistantLatest,
    AssistantPatch,
    AssistantSearch,
    AssistantVersions,
)
from api.shapes import assistant_json, version_json

router = APIRouter(prefix="/assistants", tags=["assistants"])


@router.post("")
async def create(
    parts: PartsDep, access: AccessDep, body: Annotated[AssistantCreate, Depends(BodyOf(AssistantCreate))]
) -> Response:
    """Creates an assistant: a graph with a configuration of its own."""
    return answer(assistant_json(await parts.assistants.create(body, access.only)))


@router.post("/search")
async def search(
    parts: PartsDep, access: AccessDep, body: Annotated[AssistantSearch, Depends(BodyOf(AssistantSearch))]
) -> Response:
    """Returns assistants, the newest first unless the body says otherwise."""
    found = await rows.search(
        parts.pool,
        parts.assistants.wanted(body, access.only),
        sort=body.sort_by,
        ascending=body.sort_order == "asc",
        limit=body.limit + 1,
        offset=body.offset,
    )
    page = found[: body.limit]
    return answer(
        [selected(assistant_json(row), body.select) for row in page],
        pagination(body.offset, len(page), more=len(found) > body.limit),
    )


@router.post("/count")
async def count(
    parts: PartsDep, access: AccessDep, body: Annotated[AssistantCount, Depends(BodyOf(AssistantCount))]
) -> Response:
    """Returns how many assistants there are."""
    return answer(await rows.count(parts.pool, parts.assistants.wanted(body, access.only)))


@router.get("/{assistant_id}")
async def get(parts: PartsDep, assistant_id: str) -> Response:
    """Returns an assistant, found by its id or its graph's name."""
    return answer(assistant_json(await parts.assistants.in_path(assistant_id)))


@router.patch("/{assistant_id}")
async def patch(
    parts: PartsDep,
    access: AccessDep,
    assistant_id: str,
    body: Annotated[AssistantPatch, Depends(BodyOf(AssistantPatch))],
) -> Response:
    """Makes a new version of an assistant, which runs use from now on."""
    return answer(assistant_json(await parts.assistants.update(assistant_id, body, access.only)))


@router.delete("/{assistant_id}")
async def delete(
    parts: PartsDep, access: AccessDep, assistant_id: str, delete_threads: bool = False
) -> Response:
    """Deletes an assistant with its versions, and its threads if asked to; a graph's own one comes back when named."""
    found = parts.assistants.id_in_path(assistant_id)
    if delete_threads:
        theirs = await access.may("threads", "delete", {"assistant_id": UUID(found)})
        await remove_threads_of(parts, found, theirs)
    if not await rows.delete(parts.pool, found, access.only):
        raise NotFound(f"Assistant with ID {found} not found")
    return Response(status_code=204)


@router.post("/{assistant_id}/versions")
async def versions(
    parts: PartsDep,
    assistant_id: str,
    body: Annotated[AssistantVersions, Depends(BodyOf(AssistantVersions))],
) -> Response:
    """Returns an assistant's versions, the newest first."""
    assistant = await parts.assistants.in_path(assistant_id)
    found = await rows.versions(
        parts.pool,
        str(assistant["assistant_id"]),
        metadata=body.metadata,
        limit=body.limit,
        offset=body.offset,
    )
    return answer([version_json(row) for row in found])


@router.post("/{assistant_id}/latest")
async def latest(
    parts: PartsDep,
    access: AccessDep,
    assistant_id: str,
    body: Annotated[AssistantLatest, Depends(BodyOf(AssistantLatest))],
) -> Response:
    """Makes an earlier version the one that runs use."""
    assistant = await parts.assistants.in_path(assistant_id)
    row = await rows.set_latest(parts.pool, str(assistant["assistant_id"]), body.version, access.only)
    if row is None:
        raise NotFound(f"Assistant with ID {assistant['assistant_id']} has no version {body.version}")
    return answer(assistant_json(row))


@router.get("/{assistant_id}/graph")
async def graph(parts: PartsDep, assistant_id: str, xray: str = "false") -> Response:
    """Returns the drawing of the graph; `xray` shows what is inside of its subgraphs."""
    async with _graph(parts, assistant_id) as (_, plain):
        return answer(await drawing(plain, xray=_xray(xray)))


@router.get("/{assistant_id}/schemas")
async def graph_schemas(parts: PartsDep, assistant_id: str) -> Response:
    """Returns JSON Schemas of the graph's input, output, state and context."""
    async with _graph(parts, assistant_id) as (graph_id, plain):
        return answer({"graph_id": graph_id, **schemas(plain)})


@router.get("/{assistant_id}/subgraphs")
@router.get("/{assistant_id}/subgraphs/{namespace}")
async def subgraphs(
    parts: PartsDep,
    assistant_id: str,
    namespace: str | None = None,
    recurse: Annotated[bool, Query()] = False,
) -> Response:
    """Returns the schemas of the graph's subgraphs, by namespace."""
    async with _graph(parts, assistant_id) as (_, plain):
        return answer(await subgraph_schemas(plain, namespace, recurse=recurse))


@asynccontextmanager
async def _graph(parts: Parts, name: str) -> AsyncGenerator[tuple[str, AnyGraph]]:
    """Yields an assistant's graph; a factory is called with the assistant's config."""
    assistant = await parts.assistants.in_path(name)
    async with parts.project.plain(assistant["graph_id"], assistant_config(assistant)) as plain:
        yield assistant["graph_id"], plain


def _xray(text: str) -> bool | int:
    """Returns how deep to look: all the way, not at all, or that many levels."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if text.isascii() and text.isdigit() and len(text) < 4:
        return int(text)
    raise Invalid("xray must be true, false or a number of levels")
