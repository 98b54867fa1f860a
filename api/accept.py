"""Owns the acceptance of a run: from a request's body to a recorded turn on its way to Temporal.

Next: `api/turn_gateway.py`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from langgraph.graph.state import StateGraph
from langgraph.pregel import Pregel
from psycopg.rows import DictRow

from adapter import faultpoints
from adapter.errors import Invalid, NotFound, PublicError
from adapter.store import requests
from adapter.store.requests import NewTurn
from adapter.user import AuthUser, without_user
from api.access import Access
from api.deps import Parts
from api.schemas.runs import RunCreate

# Threads of stateless runs that carry a key have ids below this one.
_STATELESS = uuid.UUID("5f0ad4a5-0b3b-4b52-9b3e-5c4a4ed1a2c7")
TEMPORARY = "turns_temporary"
# Strategies that stop what waits: a full queue does not keep them out.
_CLEAR_QUEUE = ("interrupt", "rollback")


class BothGiven(PublicError):
    """The request says the same thing in two ways."""


async def accept(
    parts: Parts,
    access: Access,
    thread_id: str,
    body: RunCreate,
    *,
    key: str | None,
    temporary: bool = False,
) -> DictRow:
    """Records a turn, or finds the one that the same request recorded before, and has it started.

    Args:
        parts: of the process.
        access: who it is run for, and on which threads they may run something.
        thread_id: the thread it runs on.
        body: the request.
        key: the client's Idempotency-Key, or None.
        temporary: whether the thread goes with the run.

    Raises:
        NotFound: there is no such thread or assistant.
        Conflict: the thread is busy and the request refuses to wait, or the key stands for another request.
        Invalid: the request cannot be carried out.
        TooMany: as many turns wait on the thread as may.
    """
    _refuse_unsupported(body)
    assistant = parts.assistants.for_run(body.assistant_id)
    request = _without_user(await _with_context(parts, assistant.graph_id, body.request()))
    if temporary:
        request["temporary"] = True
    if body.if_not_exists == "create" or temporary:
        metadata = {**body.metadata, TEMPORARY: True} if temporary and _goes(body) else body.metadata
        await requests.make_thread(parts.pool, thread_id, access.only.stamped(metadata))
    try:
        recorded = await requests.record_turn(
            parts.pool,
            NewTurn(
                thread_id=thread_id,
                graph_id=assistant.graph_id,
                assistant_id=assistant.assistant_id,
                request=request,
                metadata=body.metadata,
                config=_thread_config(request.get("config") or {}),
                strategy=body.multitask_strategy,
                # An empty header says nothing: unrelated requests that carry one are not the same.
                idempotency_key=key or None,
                refuse_busy=body.multitask_strategy == "reject",
                user=None if access.user is None else dict(access.user),
                only=access.only,
                queued_turns=None if body.multitask_strategy in _CLEAR_QUEUE else parts.settings.queued_turns,
            ),
        )
    except NotFound:
        raise NotFound("Thread or assistant not found.") from None
    faultpoints.reached(faultpoints.AFTER_RECORD)
    if recorded.row["status"] == "pending":
        parts.gateway.start(
            recorded.row,
            cut_in=recorded.new and body.multitask_strategy in ("interrupt", "rollback"),
            roll_back=body.multitask_strategy == "rollback",
        )
    return recorded.row


def stateless_thread_id(key: str | None, user: AuthUser | None) -> str:
    """Returns the thread of a stateless run: the same one for the same key of the same user."""
    if not key:
        return requests.new_id()
    whose = _STATELESS if user is None else uuid.uuid5(_STATELESS, user.identity)
    return str(uuid.uuid5(whose, key))


def _goes(body: RunCreate) -> bool:
    return body.on_completion == "delete"


def _refuse_unsupported(body: RunCreate) -> None:
    if body.after_seconds > 0:
        raise Invalid("after_seconds is not supported yet")
    if body.webhook is not None:
        raise Invalid("webhook is not supported yet")


def _without_user(request: dict[str, Any]) -> dict[str, Any]:
    """Takes out what a client says about who it is."""
    config: Mapping[str, Any] = request.get("config") or {}
    configurable: Mapping[str, Any] = config.get("configurable") or {}
    if not configurable:
        return request
    return {**request, "config": {**config, "configurable": without_user(configurable)}}


async def _with_context(parts: Parts, graph_id: str, request: dict[str, Any]) -> dict[str, Any]:
    """Lets `context` and `config.configurable` stand for each other, as clients of both ages expect.

    Raises:
        BothGiven: both have something in them.
    """
    config: Mapping[str, Any] = request.get("config") or {}
    context: Mapping[str, Any] = request.get("context") or {}
    configurable: Mapping[str, Any] = config.get("configurable") or {}
    if context and configurable:
        raise BothGiven(
            "Cannot specify both configurable and context. Prefer setting context alone, which replaces it."
        )
    if context:
        return {**request, "config": {**config, "configurable": dict(context)}}
    if configurable:
        fields = await _context_fields(parts, graph_id)
        made = {name: value for name, value in configurable.items() if name in fields}
        return {**request, "context": made} if made else request
    return request


async def _context_fields(parts: Parts, graph_id: str) -> frozenset[str]:
    """Returns what the graph's context may hold; nothing for a factory, which would have to be called."""
    if not isinstance(parts.project.exports[graph_id], (Pregel, StateGraph)):
        return frozenset()
    async with parts.project.plain(graph_id) as graph:
        try:
            schema = graph.get_context_jsonschema() or {}
        except ValueError:  # a context of a kind that has no schema
            return frozenset()
    return frozenset(schema.get("properties", {}))


def _thread_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what the thread remembers of a run's config: all but the place it started from."""
    place = ("checkpoint_id", "checkpoint_ns", "checkpoint_map", "thread_id")
    configurable: Mapping[str, Any] = config.get("configurable") or {}
    return {**config, "configurable": {k: v for k, v in configurable.items() if k not in place}}
