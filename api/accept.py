"""Owns the acceptance of a run: from a request's body to a recorded turn on its way to Temporal.

Next: `api/turn_gateway.py`.
"""

from __future__ import annotations

import uuid

from psycopg.rows import DictRow

from adapter import faultpoints, webhook
from adapter.errors import AssistantChanged, NotFound
from adapter.store import requests
from adapter.store.requests import NewTurn
from adapter.turn_request import starts_over
from adapter.user import AuthUser
from api.access import Access
from api.deps import Parts
from api.run_config import thread_config, with_assistant, with_context, without_claims
from api.schemas.runs import RunCreate

# Threads of stateless runs that carry a key have ids below this one.
_STATELESS = uuid.UUID("5f0ad4a5-0b3b-4b52-9b3e-5c4a4ed1a2c7")
TEMPORARY = "turns_temporary"
# Strategies that stop what waits: a full queue does not keep them out.
_CLEAR_QUEUE = ("interrupt", "rollback")


async def accept(
    parts: Parts,
    access: Access,
    thread_id: str,
    body: RunCreate,
    *,
    key: str | None,
    temporary: bool = False,
    waits: bool = False,
) -> DictRow:
    """Records a turn, or finds the one that the same request recorded before, and has it started.

    Args:
        parts: of the process.
        access: who it is run for, and on which threads they may run something.
        thread_id: the thread it runs on.
        body: the request.
        key: the client's Idempotency-Key, or None.
        temporary: whether the thread goes with the run.
        waits: whether its outcome is the answer: no states are kept for its stream unless it names a stream mode.

    Raises:
        NotFound: there is no such thread or assistant.
        Conflict: the thread is busy and the request refuses to wait, or the key stands for another request.
        Invalid: the request cannot be carried out.
        TooMany: as many turns wait on the thread as may.
    """
    check_webhook(parts, body)
    while True:
        try:
            return await _accept(parts, access, thread_id, body, key, temporary=temporary, waits=waits)
        except AssistantChanged as exc:
            parts.assistants.forget(exc.assistant_id)


async def _accept(
    parts: Parts,
    access: Access,
    thread_id: str,
    body: RunCreate,
    key: str | None,
    *,
    temporary: bool,
    waits: bool,
) -> DictRow:
    assistant = await assistant_of(parts, access, body.assistant_id)
    graph_id, assistant_id = str(assistant["graph_id"]), str(assistant["assistant_id"])
    asked = without_claims(await with_context(parts.project, graph_id, body.request()))
    if temporary:
        asked["temporary"] = True
    request = dict(await with_assistant(parts.project, assistant, asked))
    if waits and "stream_mode" not in body.model_fields_set:
        request["quiet"] = True
    makes = None
    if body.if_not_exists == "create" or temporary:
        metadata = {**body.metadata, TEMPORARY: True} if temporary and _goes(body) else body.metadata
        makes = access.only.stamped(metadata)
    try:
        recorded = await requests.record_turn(
            parts.pool,
            NewTurn(
                thread_id=thread_id,
                graph_id=graph_id,
                assistant_id=assistant_id,
                request=request,
                metadata={**assistant["metadata"], **body.metadata},
                config=thread_config(request.get("config") or {}),
                strategy=body.multitask_strategy,
                # An empty header says nothing: unrelated requests that carry one are not the same.
                idempotency_key=key or None,
                refuse_busy=body.multitask_strategy == "reject",
                identity=None if assistant["system"] else assistant_id,
                asked=asked,
                user=None if access.user is None else dict(access.user),
                only=access.only,
                delay=body.after_seconds,
                makes=makes,
                assistant_as_of=assistant["updated_at"],
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
            first=parts.project.first_effect(graph_id) if starts_over(asked) else None,
        )
    return recorded.row


async def assistant_of(parts: Parts, access: Access, name: str) -> DictRow:
    """Returns the assistant that a run's body names, if whoever runs it may use it; a graph's own is everybody's.

    Raises:
        NotFound: there is none, it is not theirs, or its graph is not in the project.
        Invalid: the name is neither an id nor a graph's name.
        Forbidden, Refused, HandlerFailed: as `Access.may` does.
    """
    found = await parts.assistants.for_run(name)
    if not found["system"]:
        only = await access.may("assistants", "read", {"assistant_id": found["assistant_id"]})
        if not only.admits(found["metadata"]):
            raise NotFound("Thread or assistant not found.")
    parts.assistants.check_graph(found["graph_id"])
    return found


def stateless_thread_id(key: str | None, user: AuthUser | None) -> str:
    """Returns the thread of a stateless run: the same one for the same key of the same user."""
    if not key:
        return requests.new_id()
    whose = _STATELESS if user is None else uuid.uuid5(_STATELESS, user.identity)
    return str(uuid.uuid5(whose, key))


def _goes(body: RunCreate) -> bool:
    return body.on_completion == "delete"


def check_webhook(parts: Parts, body: RunCreate) -> None:
    """Refuses a webhook that would not be called.

    Raises:
        Invalid: its URL is not one, or names this machine or a private network.
    """
    if body.webhook is not None:
        webhook.check(body.webhook, private=parts.settings.webhook_private)
