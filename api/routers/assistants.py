"""Routes of assistants: one per configured graph."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from adapter.errors import Invalid
from api.access import Access, AccessDep
from api.assistants import METADATA, Assistant
from api.bodies import BodyOf
from api.deps import Parts, PartsDep, answer, pagination, selected
from api.drawings import drawing, schemas, subgraph_schemas
from api.schemas.assistants import AssistantCount, AssistantSearch

router = APIRouter(prefix="/assistants", tags=["assistants"])


@router.post("/search")
async def search(
    parts: PartsDep, access: AccessDep, body: Annotated[AssistantSearch, Depends(BodyOf(AssistantSearch))]
) -> Response:
    """Returns assistants."""
    found = _matching(parts, access, body)
    found.sort(key=lambda a: str(a.to_json()[body.sort_by]), reverse=body.sort_order == "desc")
    page = found[body.offset : body.offset + body.limit]
    more = len(found) > body.offset + body.limit
    return answer(
        [selected(assistant.to_json(), body.select) for assistant in page],
        pagination(body.offset, len(page), more=more),
    )


@router.post("/count")
async def count(
    parts: PartsDep, access: AccessDep, body: Annotated[AssistantCount, Depends(BodyOf(AssistantCount))]
) -> Response:
    """Returns how many assistants there are."""
    return answer(len(_matching(parts, access, body)))


@router.get("/{assistant_id}")
async def get(parts: PartsDep, assistant_id: str) -> Response:
    """Returns an assistant, found by its id or its graph's name."""
    return answer(parts.assistants.in_path(assistant_id).to_json())


@router.get("/{assistant_id}/graph")
async def graph(parts: PartsDep, assistant_id: str, xray: str = "false") -> Response:
    """Returns the drawing of the graph; `xray` shows what is inside of its subgraphs."""
    assistant = parts.assistants.in_path(assistant_id)
    async with parts.project.plain(assistant.graph_id) as plain:
        return answer(await drawing(plain, xray=_xray(xray)))


@router.get("/{assistant_id}/schemas")
async def graph_schemas(parts: PartsDep, assistant_id: str) -> Response:
    """Returns JSON Schemas of the graph's input, output, state and context."""
    assistant = parts.assistants.in_path(assistant_id)
    async with parts.project.plain(assistant.graph_id) as plain:
        return answer({"graph_id": assistant.graph_id, **schemas(plain)})


@router.get("/{assistant_id}/subgraphs")
@router.get("/{assistant_id}/subgraphs/{namespace}")
async def subgraphs(
    parts: PartsDep,
    assistant_id: str,
    namespace: str | None = None,
    recurse: Annotated[bool, Query()] = False,
) -> Response:
    """Returns the schemas of the graph's subgraphs, by namespace."""
    assistant = parts.assistants.in_path(assistant_id)
    async with parts.project.plain(assistant.graph_id) as plain:
        return answer(await subgraph_schemas(plain, namespace, recurse=recurse))


def _matching(parts: Parts, access: Access, body: AssistantCount) -> list[Assistant]:
    if not access.only.admits(METADATA):
        return []
    if body.graph_id is not None:
        found = [parts.assistants.of_graph(body.graph_id)]
    else:
        found = parts.assistants.all()
    if body.name is not None:
        found = [a for a in found if body.name.lower() in a.graph_id.lower()]
    asked: dict[str, Any] = body.metadata
    return [a for a in found if all(METADATA.get(key) == value for key, value in asked.items())]


def _xray(text: str) -> bool | int:
    """Returns how deep to look: all the way, not at all, or that many levels."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if text.isascii() and text.isdigit() and len(text) < 4:
        return int(text)
    raise Invalid("xray must be true, false or a number of levels")
