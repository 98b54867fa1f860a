"""Routes of a thread's state: reading it, its history, editing and forking it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from langgraph.types import StateUpdate as Edit
from starlette.responses import Response

from adapter.store import requests
from adapter.wire import checkpoint_json
from api.bodies import BodyOf
from api.deps import Parts, PartsDep, ThreadId, answer
from api.schemas.state import Checkpoint, History, StateAt, StateUpdate
from api.schemas.threads import Limit
from api.shapes import EMPTY_STATE, state_json
from api.snapshots import Address

router = APIRouter(prefix="/threads/{thread_id}", tags=["state"])


@router.get("/state")
async def state(parts: PartsDep, thread_id: ThreadId, subgraphs: bool = False) -> Response:
    """Returns the latest state."""
    return answer(await _state(parts, thread_id, Address(), subgraphs=subgraphs))


@router.get("/state/{checkpoint_id}")
async def state_at(
    parts: PartsDep, thread_id: ThreadId, checkpoint_id: str, subgraphs: bool = False
) -> Response:
    """Returns the state at a checkpoint; an unknown one is empty."""
    return answer(await _state(parts, thread_id, Address(checkpoint_id), subgraphs=subgraphs))


@router.post("/state/checkpoint")
async def state_at_address(
    parts: PartsDep, thread_id: ThreadId, body: Annotated[StateAt, Depends(BodyOf(StateAt))]
) -> Response:
    """Returns the state at a checkpoint, also a subgraph's; without an id the latest."""
    at = _address(body.checkpoint, body.checkpoint_id)
    return answer(await _state(parts, thread_id, at, subgraphs=body.subgraphs))


@router.post("/state")
async def update(
    parts: PartsDep, thread_id: ThreadId, body: Annotated[StateUpdate, Depends(BodyOf(StateUpdate))]
) -> Response:
    """Edits the state as if a node had returned the values; at an earlier checkpoint it forks."""
    at = _address(body.checkpoint, body.checkpoint_id)
    edited = await parts.snapshots.update(thread_id, at, [[Edit(body.values, body.as_node)]])
    checkpoint = checkpoint_json(edited)
    return answer(
        {
            "checkpoint": checkpoint,
            "configurable": checkpoint,
            "checkpoint_id": checkpoint.get("checkpoint_id"),
        }
    )


@router.post("/history")
async def history(
    parts: PartsDep, thread_id: ThreadId, body: Annotated[History, Depends(BodyOf(History))]
) -> Response:
    """Returns states, the newest first."""
    return answer(await _history(parts, thread_id, body))


@router.get("/history")
async def get_history(
    parts: PartsDep,
    thread_id: ThreadId,
    limit: Annotated[Limit, Query()] = 10,
    before: str | None = None,
) -> Response:
    """Returns states, the newest first."""
    return answer(await _history(parts, thread_id, History(limit=limit, before=before)))


async def _state(parts: Parts, thread_id: str, at: Address, *, subgraphs: bool) -> Mapping[str, Any]:
    thread = await requests.get_thread(parts.pool, thread_id)
    snapshot = await parts.snapshots.state(thread, at, subgraphs=subgraphs)
    return EMPTY_STATE if snapshot is None else state_json(snapshot)


async def _history(parts: Parts, thread_id: str, body: History) -> list[dict[str, Any]]:
    thread = await requests.get_thread(parts.pool, thread_id)
    found = await parts.snapshots.history(
        thread,
        _address(body.checkpoint, body.checkpoint_id),
        metadata=body.metadata,
        before=body.before,
        limit=body.limit,
    )
    return [state_json(snapshot) for snapshot in found]


def _address(checkpoint: Checkpoint | None, checkpoint_id: str | None) -> Address:
    given = checkpoint or Checkpoint()
    return Address(given.checkpoint_id or checkpoint_id or None, given.checkpoint_ns)
