"""Owns what every route may ask for: the process's parts, checked ids, answers in wire JSON."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, cast

from fastapi import Depends, Request
from langgraph.store.base import BaseStore
from starlette.responses import Response

from adapter.errors import Invalid
from adapter.graphs import Project
from adapter.settings import Settings
from adapter.store.pool import Pool
from adapter.wire import dumps
from api.assistants import Assistants
from api.event_stream import EventHub, EventStreams
from api.snapshots import Snapshots
from api.turn_gateway import TurnGateway


@dataclass(frozen=True, slots=True)
class Parts:
    """What a process serves from; made by the application's lifespan.

    Attributes:
        store: LangGraph's long-term store, the one that nodes are given.
        closing: set when the process was told to stop.
    """

    settings: Settings
    project: Project
    pool: Pool
    hub: EventHub
    streams: EventStreams
    gateway: TurnGateway
    assistants: Assistants
    snapshots: Snapshots
    store: BaseStore
    closing: asyncio.Event


# All of them are `async`: FastAPI calls what is not in a thread, which costs more than any of these.
async def _parts(request: Request) -> Parts:
    return cast("Parts", request.app.state.parts)


PartsDep = Annotated[Parts, Depends(_parts)]


def checked_uuid(text: str, what: str) -> str:
    """Returns an id in its canonical form.

    Raises:
        Invalid: it is not a UUID.
    """
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise Invalid(f"Invalid {what} ID: must be a UUID") from None


async def _thread_id(thread_id: str) -> str:
    return checked_uuid(thread_id, "thread")


async def _run_id(run_id: str) -> str:
    return checked_uuid(run_id, "run")


ThreadId = Annotated[str, Depends(_thread_id)]
RunId = Annotated[str, Depends(_run_id)]


async def refuse_nul(request: Request) -> None:
    """Refuses a path or query that holds NUL, which no stored text can match.

    Raises:
        Invalid: it does.
    """
    if "\x00" in request.scope["path"] or b"%00" in request.scope["query_string"]:
        raise Invalid("The request holds a NUL character, which cannot be stored")


def answer(value: Any, headers: Mapping[str, str] | None = None) -> Response:
    """Returns a 200 with JSON of anything a graph may hold."""
    return Response(dumps(value), headers=dict(headers) if headers else None, media_type="application/json")


def selected(item: dict[str, Any], select: Iterable[str] | None) -> dict[str, Any]:
    """Returns only the fields that the client asked for; all of them when it named none."""
    wanted = set(select or ())
    return {key: value for key, value in item.items() if key in wanted} if wanted else item


def pagination(offset: int, rows: int, *, more: bool) -> dict[str, str]:
    """Returns the paging headers of a search. The total is that of what is known: this page and whether it goes on."""
    headers = {"x-pagination-total": str(offset + rows + more)}
    if more:
        headers["x-pagination-next"] = str(offset + rows)
    return headers
