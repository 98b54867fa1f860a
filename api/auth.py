"""Owns who calls and what they may do, as a `langgraph_sdk.Auth` object says it: the user's own, or that of a key list.

What the object's handlers raise by accident stays in the log. Next: `api/access.py`, which asks for every route.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, cast

import orjson
from fastapi import Request
from langgraph_sdk import Auth
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from adapter.errors import ConfigError, Forbidden
from adapter.graphs import Project
from adapter.settings import Settings
from adapter.store.only import EVERYTHING, BadFilter, Only
from adapter.user import AuthUser
from api.bodies import decode, read_body
from api.errors import HandlerFailed, Refused
from api.keys import Headers, by_key

log = logging.getLogger("turns.api")

_Handler = Callable[..., Awaitable[object]]

# What an authenticate handler may ask for, by name.
_PARAMETERS: Final = frozenset(
    {
        "request",
        "body",
        "path",
        "method",
        "scopes",
        "path_params",
        "query_params",
        "headers",
        "authorization",
    }
)
# The user is stored with each turn.
_USER_BYTES: Final = 65_536
_USER_FIELDS: Final = ("identity", "display_name", "is_authenticated", "permissions")


class Policy:
    """Answers who a request is from and what they may see.

    Args:
        auth: with an authenticate handler.

    Raises:
        ConfigError: it has none, or one that asks for what there is not.
    """

    def __init__(self, auth: Auth) -> None:
        # Names that the SDK promises not to change, since servers read them.
        registered = cast("Any", auth)
        if registered._authenticate_handler is None:
            raise ConfigError('"auth": the Auth object has no @auth.authenticate handler')
        self._authenticate = cast("Callable[..., object]", registered._authenticate_handler)
        self._asked_for = _parameters(self._authenticate)
        self._handlers = cast("Mapping[tuple[str, str], list[_Handler]]", registered._handlers)
        self._global = cast("list[_Handler]", registered._global_handlers)

    async def authenticate(self, connection: HTTPConnection) -> AuthUser:
        """Returns who a request is from.

        Raises:
            Refused: the handler does not know them, or refuses them.
            HandlerFailed: the handler raised, or returned what is no user; the log says what.
            Invalid, TooLarge: the handler asks for the body, which cannot be read.
        """
        given = await self._arguments(connection)
        try:
            if inspect.iscoroutinefunction(self._authenticate):
                user: object = await self._authenticate(**given)
            else:
                user = await asyncio.to_thread(self._authenticate, **given)
                if inspect.isawaitable(user):
                    user = await cast("Awaitable[object]", user)
            if user is not None:
                return _user(user)
        except Exception as exc:
            raise _refusal(exc, "authenticate") from exc
        raise Refused(401, "Unauthorized")

    async def _arguments(self, connection: HTTPConnection) -> dict[str, Any]:
        headers = Headers(connection.scope["headers"])
        given: dict[str, Any] = {
            "request": connection,
            "path": connection.url.path,
            "method": connection.scope.get("method", "GET"),
            "scopes": [],
            "path_params": dict(connection.path_params),
            "query_params": dict(connection.query_params),
            "headers": headers,
            "authorization": headers.get("authorization"),
        }
        if "body" in self._asked_for:
            raw = await read_body(connection) if isinstance(connection, Request) else b""
            given["body"] = decode(raw) if raw else None
        return {name: value for name, value in given.items() if name in self._asked_for}

    async def authorise(self, user: AuthUser, resource: str, action: str, value: dict[str, Any]) -> Only:
        """Returns which rows a user may do something with; the most specific handler decides, without one all.

        Args:
            user: who asks.
            resource: "threads", "assistants", "crons" or "store".
            action: as LangGraph names it.
            value: what the request says; the handler may change it.

        Raises:
            Forbidden: they may not.
            Refused: the handler says so in its own words.
            HandlerFailed: the handler raised, or returned what is no answer; the log says what.
        """
        handler = self._handler(resource, action)
        if handler is None:
            return EVERYTHING
        asked: Any = Auth.types.AuthContext
        context = asked(permissions=user.permissions, user=user, resource=resource, action=action)
        try:
            result = await handler(ctx=context, value=value)
            if result is None or result is True:
                return EVERYTHING
            if isinstance(result, Mapping):
                if result and resource == "store":
                    raise BadFilter(
                        'items of the store have no metadata: a handler of it refuses, or changes value["namespace"]'
                    )
                return Only.of(cast("Mapping[str, Any]", result))
            if result is not False:
                raise BadFilter(f"an answer is None, a bool or a filter, not a {type(result).__name__}")
        except AssertionError:
            pass  # as the SDK's examples refuse
        except Exception as exc:
            raise _refusal(exc, f"{resource}.{action}") from exc
        raise Forbidden("Forbidden")

    def _handler(self, resource: str, action: str) -> _Handler | None:
        for key in ((resource, action), (resource, "*"), ("*", action)):
            if self._handlers.get(key):
                return self._handlers[key][0]
        return self._global[0] if self._global else None


def policy_of(settings: Settings, project: Project) -> Policy | None:
    """Returns the configured policy; None when nobody is asked who they are.

    Raises:
        ConfigError: it is set up wrongly, or twice.
    """
    auth = project.auth()
    if not settings.api_keys:
        return None if auth is None else Policy(auth)
    if auth is not None:
        raise ConfigError(
            f'TURNS_API_KEYS is set and {project.path} has an "auth"; only one can say who calls: unset the other'
        )
    return Policy(by_key(settings.api_keys))


def _parameters(authenticate: Callable[..., object]) -> frozenset[str]:
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    asked_for: set[str] = set()
    for name, parameter in inspect.signature(authenticate).parameters.items():
        if parameter.kind in named and name in _PARAMETERS:
            asked_for.add(name)
        elif parameter.kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL) and (
            parameter.default is inspect.Parameter.empty
        ):
            raise ConfigError(
                f'"auth": the authenticate handler asks for "{name}"; it can have {", ".join(sorted(_PARAMETERS))}'
            )
    return frozenset(asked_for)


def _user(given: object) -> AuthUser:
    if isinstance(given, str):
        fields: dict[str, Any] = {"identity": given}
    elif isinstance(given, Mapping):
        fields = dict(cast("Mapping[str, Any]", given))
    else:
        own = {k: v for k, v in getattr(given, "__dict__", {}).items() if not k.startswith("_")}
        fields = own | {name: getattr(given, name) for name in _USER_FIELDS if hasattr(given, name)}
    if "permissions" in fields:
        fields["permissions"] = list(fields["permissions"] or ())
    if not isinstance(fields.get("identity"), str) or not fields["identity"]:
        raise TypeError("a user has an identity, which is a text")
    raw = orjson.dumps(fields)
    if len(raw) > _USER_BYTES or b"\\u0000" in raw:
        raise ValueError(
            f"a user is at most {_USER_BYTES} bytes of JSON without NUL, as it is stored with each turn"
        )
    return AuthUser(orjson.loads(raw))


def _refusal(exc: Exception, where: str) -> Exception:
    """Returns what the client is told of what a handler raised."""
    if isinstance(exc, (Refused, Forbidden)):
        return exc
    if isinstance(exc, (Auth.exceptions.HTTPException, HTTPException)) and 400 <= exc.status_code < 600:
        detail = cast("object", exc.detail)
        text = detail if isinstance(detail, str) else orjson.dumps(detail, default=str).decode()
        return Refused(exc.status_code, text, exc.headers)
    log.error("the auth handler of %s failed", where, exc_info=exc)
    return HandlerFailed("Internal Server Error")
