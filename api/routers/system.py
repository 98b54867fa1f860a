"""Routes about the server itself."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from adapter.errors import StoreUnavailable
from adapter.store.pool import fetch_one
from api.deps import Parts, PartsDep, answer
from api.errors import Unavailable

router = APIRouter(tags=["system"])

_OK = {"ok": True, "services": dict[str, Any]()}
# A probe that takes longer than this has failed.
_PROBE_SECONDS = 3.0


@router.get("/ok")
@router.head("/ok", include_in_schema=False)
@router.get("/", include_in_schema=False)
@router.head("/", include_in_schema=False)
async def ok(parts: PartsDep, check_db: bool = False) -> Response:
    """Answers that the server runs; with `check_db` also that its database does."""
    if check_db:
        await _database(parts)
    return answer(_OK)


@router.get("/info")
@router.head("/info", include_in_schema=False)
async def info() -> Response:
    """Tells versions and what this server can do."""
    return answer(
        {
            "version": version("durable-turns"),
            "langgraph_py_version": version("langgraph"),
            "flags": {
                "assistants": True,
                "crons": False,
                "langsmith": False,
                "langsmith_tracing_replicas": False,
                "langsmith_tracing_session_on_runs": False,
            },
            "host": {
                "kind": "self-hosted",
                "project_id": None,
                "host_revision_id": None,
                "revision_id": None,
                "tenant_id": None,
            },
        }
    )


@router.get("/health/started")
async def started(parts: PartsDep) -> Response:
    """Answers once the process has started: its schema fits, its graphs are loaded."""
    return answer({"ok": True, "graphs": parts.project.graph_ids})


@router.get("/health/live")
async def live() -> Response:
    """Answers as long as the process can answer at all; it depends on nothing else."""
    return answer({"ok": True})


@router.get("/health/ready")
async def ready(parts: PartsDep) -> Response:
    """Answers 200 when the database and Temporal do, and the process was not told to stop."""
    if parts.closing.is_set():
        raise Unavailable("The process is stopping.")
    await _database(parts)
    if not await parts.gateway.reachable():
        raise Unavailable("Temporal is not reachable.")
    return answer({"ok": True})


async def _database(parts: Parts) -> None:
    try:
        async with asyncio.timeout(_PROBE_SECONDS):
            await fetch_one(parts.pool, "ping")
    except (StoreUnavailable, TimeoutError):
        raise Unavailable("The database is not reachable.") from None
