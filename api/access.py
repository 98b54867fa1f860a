"""Owns the table of what each route does to whose rows, and the asking, before a route begins.

The application depends on `gate`, so every route passes it, and an application with a route that has no rule here is
not built. What names a thread, a run or an assistant in its path is checked before the route sees it; a route that
searches, or that makes a thread, passes `Access.only` on to its statement.
"""

from __future__ import annotations

import copy
import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar, cast

from fastapi import APIRouter, Depends
from fastapi.routing import APIRoute, APIWebSocketRoute
from starlette.requests import HTTPConnection

from adapter.errors import NotFound
from adapter.store import requests
from adapter.store.only import EVERYTHING, Only
from adapter.user import AuthUser
from api.auth import Policy
from api.bodies import Body, BodyOf, without_reserved
from api.deps import Parts, checked_uuid
from api.errors import HandlerFailed

B = TypeVar("B", bound=Body)
log = logging.getLogger("turns.api")


@dataclass(frozen=True, slots=True)
class Rule:
    """What a route does, in the words of `langgraph_sdk.Auth`.

    Attributes:
        body: whether the handler is shown the request's body; it is asked when the body is read (`BodyOf`).
    """

    resource: str
    action: str
    body: bool = False


# Open to everybody: probes, and what clients ask before they have a key.
PUBLIC: Final = Rule("", "")

_READ = Rule("threads", "read")
_UPDATE = Rule("threads", "update")
_SEARCH = Rule("threads", "search", body=True)
_RUN = Rule("threads", "create_run", body=True)
_ASSISTANT = Rule("assistants", "read")
_ASSISTANTS = Rule("assistants", "search", body=True)
_CHANGED_ASSISTANT = Rule("assistants", "update", body=True)

RULES: Final[Mapping[str, Rule]] = {
    "GET /": PUBLIC,
    "HEAD /": PUBLIC,
    "GET /ok": PUBLIC,
    "HEAD /ok": PUBLIC,
    "GET /info": PUBLIC,
    "HEAD /info": PUBLIC,
    "GET /health/started": PUBLIC,
    "GET /health/live": PUBLIC,
    "GET /health/ready": PUBLIC,
    "POST /threads": Rule("threads", "create", body=True),
    "POST /threads/search": _SEARCH,
    "POST /threads/count": _SEARCH,
    "GET /threads/abandoned": Rule("threads", "search"),
    "GET /threads/{thread_id}": _READ,
    "PATCH /threads/{thread_id}": Rule("threads", "update", body=True),
    "DELETE /threads/{thread_id}": Rule("threads", "delete"),
    # The copy is a new thread of whoever asks: see `Access.metadata_of_new_thread`.
    "POST /threads/{thread_id}/copy": _READ,
    "POST /threads/prune": Rule("threads", "delete", body=True),
    "GET /threads/{thread_id}/effects": _READ,
    "GET /threads/{thread_id}/progress": _READ,
    "GET /threads/{thread_id}/progress/stream": _READ,
    "GET /threads/{thread_id}/state": _READ,
    "GET /threads/{thread_id}/state/{checkpoint_id}": _READ,
    "POST /threads/{thread_id}/state/checkpoint": _READ,
    "POST /threads/{thread_id}/state": _UPDATE,
    "GET /threads/{thread_id}/history": _READ,
    "POST /threads/{thread_id}/history": _READ,
    "POST /threads/{thread_id}/runs": _RUN,
    "POST /threads/{thread_id}/runs/stream": _RUN,
    "POST /threads/{thread_id}/runs/wait": _RUN,
    "GET /threads/{thread_id}/runs": Rule("threads", "search"),
    "GET /threads/{thread_id}/runs/{run_id}": _READ,
    "DELETE /threads/{thread_id}/runs/{run_id}": Rule("threads", "delete"),
    "GET /threads/{thread_id}/runs/{run_id}/join": _READ,
    "GET /threads/{thread_id}/runs/{run_id}/stream": _READ,
    "POST /threads/{thread_id}/runs/{run_id}/cancel": _UPDATE,
    "POST /runs": _RUN,
    "POST /runs/stream": _RUN,
    "POST /runs/wait": _RUN,
    # Asked about each run of the batch by the route.
    "POST /runs/batch": _RUN,
    "POST /runs/cancel": Rule("threads", "update", body=True),
    "GET /runs/{run_id}/stream": _READ,
    "POST /assistants": Rule("assistants", "create", body=True),
    "POST /assistants/search": _ASSISTANTS,
    "POST /assistants/count": _ASSISTANTS,
    "GET /assistants/{assistant_id}": _ASSISTANT,
    "PATCH /assistants/{assistant_id}": _CHANGED_ASSISTANT,
    # Its threads, if they are to go as well, are asked about by the route.
    "DELETE /assistants/{assistant_id}": Rule("assistants", "delete"),
    "POST /assistants/{assistant_id}/versions": _ASSISTANT,
    "POST /assistants/{assistant_id}/latest": _CHANGED_ASSISTANT,
    "GET /assistants/{assistant_id}/graph": _ASSISTANT,
    "GET /assistants/{assistant_id}/schemas": _ASSISTANT,
    "GET /assistants/{assistant_id}/subgraphs": _ASSISTANT,
    "GET /assistants/{assistant_id}/subgraphs/{namespace}": _ASSISTANT,
    "PUT /store/items": Rule("store", "put", body=True),
    "GET /store/items": Rule("store", "get"),
    "DELETE /store/items": Rule("store", "delete", body=True),
    "POST /store/items/search": Rule("store", "search", body=True),
    "POST /store/namespaces": Rule("store", "list_namespaces", body=True),
}


class Access:
    """What a request may touch, once its rule's handler was asked.

    Args:
        parts: of the process.
        policy: None when nobody is asked who they are.
        user: who calls; None as above, and on public routes.
        rule: of the route.
        connection: the request.
    """

    def __init__(
        self,
        parts: Parts,
        policy: Policy | None,
        user: AuthUser | None,
        rule: Rule,
        connection: HTTPConnection,
    ) -> None:
        self.user = user
        self._parts = parts
        self._policy = policy
        self._rule = rule
        self._connection = connection
        self._namespace: tuple[str, ...] | None = None
        self._only: Only | None = EVERYTHING if policy is None or rule is PUBLIC else None

    @property
    def only(self) -> Only:
        """The rows that the route may touch.

        Raises:
            RuntimeError: the rule's handler has not been asked: the route does not read its body.
        """
        if self._only is None:
            raise RuntimeError("the route did not read the body that its rule's handler is to be shown")
        return self._only

    async def ask(self, value: dict[str, Any]) -> None:
        """Asks the rule's handler, and looks whether what the path names is among what it answers.

        Raises:
            Forbidden, Refused, HandlerFailed: as `Policy.authorise` does.
            NotFound: what the path names does not exist, or is not theirs.
        """
        self._only = await self.may(self._rule.resource, self._rule.action, value)
        if self._only != EVERYTHING:
            await self._look(self._connection.path_params, self._only)

    async def ask_about_query(self) -> None:
        """Asks the rule's handler of a route without a body about what the path and the query name.

        Raises:
            Forbidden, Refused, HandlerFailed, NotFound: as `ask` does.
        """
        value = _named_in(self._connection.path_params)
        query = self._connection.query_params
        if self._rule.resource == "store":
            value |= {"namespace": _split(query.getlist("namespace")), "key": query.get("key")}
        elif self._rule.action == "search":
            value["metadata"] = {}
        elif self._rule.action == "update":
            value["action"] = query.get("action")
        await self.ask(value)
        if self._rule.resource == "store":
            self._namespace = _tuple(value.get("namespace"))

    def namespace(self, given: Sequence[str]) -> tuple[str, ...]:
        """Returns the namespace that a query names, or what the rule's handler made of it."""
        return _split(given) if self._namespace is None else self._namespace

    async def metadata_of_new_thread(self, thread_id: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the metadata of a thread that the user makes of another one.

        Args:
            thread_id: of the new one.
            metadata: of the other one.

        Raises:
            Forbidden, Refused, HandlerFailed: as `Policy.authorise` does.
        """
        shown = without_reserved(metadata)
        value: dict[str, Any] = {"thread_id": uuid.UUID(thread_id), "metadata": shown, "if_exists": "raise"}
        only = await self.may("threads", "create", value)
        return only.stamped(_metadata(value.get("metadata")))

    async def may(self, resource: str, action: str, value: dict[str, Any]) -> Only:
        """Returns the rows that the user may do something else with, for routes that touch several kinds.

        Raises:
            Forbidden, Refused, HandlerFailed: as `Policy.authorise` does.
        """
        if self._policy is None or self.user is None:
            return EVERYTHING
        return await self._policy.authorise(self.user, resource, action, value)

    async def with_body(self, body: B) -> B:
        """Asks the rule's handler about a body; returns it as the handler left it.

        Raises:
            Forbidden, Refused, HandlerFailed, NotFound: as `ask` does.
        """
        if self._policy is None or self.user is None or not self._rule.body or not body.shown_to_handlers:
            return body
        value = {name: _as_uuid(name, given) for name, given in body.asked().items()}
        value |= _named_in(self._connection.path_params)
        await self.ask(value)
        changed: dict[str, Any] = {name: value.get(name) for name in body.handlers_change if name in value}
        if "metadata" in changed:
            held = _metadata(changed["metadata"])
            changed["metadata"] = self.only.stamped(held) if self._rule.action == "create" else held
        if "namespace" in changed:
            changed["namespace"] = list(_tuple(changed["namespace"]))
        return body.model_copy(update=changed)

    def again(self) -> Access:
        """Returns the access for one of several bodies of a request, whose handler is asked about each."""
        return copy.copy(self)

    async def _look(self, path: Mapping[str, Any], only: Only) -> None:
        pool = self._parts.pool
        if self._rule.action == "create_run":
            return  # the thread may have to be made; the statement that records the turn looks
        if "thread_id" in path:
            thread_id = checked_uuid(path["thread_id"], "thread")
            if not await requests.visible_threads(pool, [thread_id], only):
                raise NotFound(f"Thread with ID {thread_id} not found")
        elif "run_id" in path:
            if not await requests.turn_is_visible(pool, checked_uuid(path["run_id"], "run"), only):
                raise NotFound("Not Found")
        elif "assistant_id" in path:
            assistant = await self._parts.assistants.in_path(path["assistant_id"])
            if not only.admits(assistant["metadata"]):
                raise NotFound("Not Found")


async def gate(connection: HTTPConnection) -> Access:
    """The dependency that every request passes before its route begins.

    Raises:
        Refused: nobody knows who calls.
        Forbidden, HandlerFailed, NotFound: as `Access.ask` does.
    """
    parts = cast("Parts", connection.app.state.parts)
    policy = cast("Policy | None", connection.app.state.policy)
    method = connection.scope["method"] if connection.scope["type"] == "http" else "WS"
    rule = RULES[f"{method} {connection.scope['route'].path}"]
    user = None
    if policy is not None and rule is not PUBLIC:
        user = await policy.authenticate(connection)
    access = Access(parts, policy, user, rule, connection)
    # Read by `BodyOf`, which comes after this one.
    connection.state.access = access
    if user is not None and not rule.body:
        await access.ask_about_query()
    return access


AccessDep = Annotated[Access, Depends(gate)]


def check_rules(routers: Iterable[APIRouter]) -> Sequence[str]:
    """Returns the routes as "METHOD path".

    Raises:
        RuntimeError: one has no rule, or does not read the body that its rule's handler is to be shown.
    """
    routes: list[str] = []
    for route in (route for router in routers for route in router.routes):
        if not isinstance(route, (APIRoute, APIWebSocketRoute)):
            raise RuntimeError(f"{route} is no route that passes the gate of api/access.py")
        methods = sorted(route.methods or ()) if isinstance(route, APIRoute) else ["WS"]
        for name in (f"{method} {route.path}" for method in methods):
            if name not in RULES:
                raise RuntimeError(f"{name} has no rule in api/access.py; say whose rows it touches")
            if RULES[name].body and not any(isinstance(d.call, BodyOf) for d in route.dependant.dependencies):
                raise RuntimeError(f"{name} has a rule about its body and does not read it with BodyOf")
            routes.append(name)
    return routes


def _named_in(path: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _as_uuid(name, given) for name, given in path.items() if name.endswith("_id")}


def _as_uuid(name: str, given: Any) -> Any:
    """Returns ids as handlers expect them; what is no UUID is refused later, or names a graph."""
    if name.endswith("_id") and isinstance(given, str):
        try:
            return uuid.UUID(given)
        except ValueError:
            return given
    return given


def _split(given: Sequence[str]) -> tuple[str, ...]:
    """Returns a namespace of a query, where its labels are joined by dots."""
    return tuple(label for part in given if part for label in part.split("."))


def _tuple(namespace: object) -> tuple[str, ...]:
    """Returns a namespace as a handler left it."""
    labels = cast("Sequence[object]", namespace) if isinstance(namespace, (tuple, list)) else None
    if namespace is not None and (labels is None or not all(isinstance(label, str) for label in labels)):
        log.error("an auth handler of the store left no namespace: a tuple of texts")
        raise HandlerFailed("Internal Server Error")
    return tuple(cast("Sequence[str]", labels or ()))


def _metadata(left: object) -> dict[str, Any]:
    """Returns metadata as a handler left it."""
    if left is not None and not isinstance(left, Mapping):
        log.error("an auth handler left metadata that are no object")
        raise HandlerFailed("Internal Server Error")
    return dict(cast("Mapping[str, Any]", left or {}))
