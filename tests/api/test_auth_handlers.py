"""What a project's `Auth` object is asked, and what its answers do."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncGenerator, Callable
from typing import Any, cast

import httpx
import pytest
from langgraph_sdk import Auth
from starlette.exceptions import HTTPException

from adapter.errors import ConfigError
from api.auth import Policy
from tests.api.graphs import steps
from tests.api.serving import Serving, fresh, in_front_of
from tests.stack import stack

auth = Auth()
"""Replaced by each test; `behind` names it in the project."""


@contextlib.asynccontextmanager
async def serving(database_url: str, temporal: str, made: Auth, **settings: Any) -> AsyncGenerator[Serving]:
    global auth
    auth = made
    async with stack(database_url, temporal, {"graph": steps("plan")}) as behind:
        behind.project.auth_target = "tests.api.test_auth_handlers:auth"
        async with in_front_of(behind, **settings) as served:
            yield served


def by_header(made: Auth) -> Auth:
    @made.authenticate
    async def who(headers: dict[bytes, bytes]) -> str:
        return headers[b"x-api-key"].decode()

    return made


def as_(name: str) -> dict[str, str]:
    return {"x-api-key": name}


async def test_parameters_by_name(database_url: str, temporal: str) -> None:
    seen: dict[str, Any] = {}
    made = Auth()

    # Synchronous, which may block: it does not run on the event loop.
    def who(
        request: Any,
        body: Any,
        path: str,
        method: str,
        path_params: dict[str, str],
        query_params: dict[str, str],
        headers: Any,
        authorization: str | None,
        scopes: list[str],
        other: int = 1,
    ) -> Any:
        seen.update(locals())
        return {"identity": "alice"}

    made.authenticate(cast("Any", who))
    async with serving(database_url, temporal, made) as api:
        thread = fresh()
        sent = {"assistant_id": "graph", "if_not_exists": "create", "input": {"trail": ["x"]}}
        answered = await api.http.post(
            f"/threads/{thread}/runs/wait?a=b", json=sent, headers={"Authorization": "Bearer t"}
        )
        assert answered.json() == {"trail": ["x", "plan"]}  # the body is still there for the route
        assert seen["body"] == sent and seen["method"] == "POST" and seen["scopes"] == []
        assert seen["path"] == f"/threads/{thread}/runs/wait" and seen["path_params"] == {"thread_id": thread}
        assert seen["query_params"] == {"a": "b"} and seen["authorization"] == "Bearer t"
        assert seen["headers"][b"authorization"] == b"Bearer t" and seen["other"] == 1
        assert seen["headers"].get("Authorization") == "Bearer t" and "x-api-key" not in seen["headers"]
        assert seen["request"].headers["authorization"] == "Bearer t"
        limit = api.app.state.settings.request_bytes
        large = await api.http.post("/threads", content=b"x" * (limit + 1))
        assert large.status_code == 413


def _raises(error: Exception) -> Any:
    async def fails(**_: Any) -> Any:
        raise error

    return fails


REFUSALS: list[tuple[Exception, int, str]] = [
    (Auth.exceptions.HTTPException(), 401, "Unauthorized"),
    (Auth.exceptions.HTTPException(status_code=429, detail="slow down"), 429, "slow down"),
    (HTTPException(402, cast("Any", {"pay": 1})), 402, '{"pay":1}'),
    (Auth.exceptions.HTTPException(status_code=200, detail="odd"), 500, "Internal Server Error"),
    (ValueError("the secret"), 500, "Internal Server Error"),
]


async def test_errors(database_url: str, temporal: str, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(database_url, temporal, by_header(Auth())) as api:
        for error, status, detail in REFUSALS:
            authenticates, authorises = cast("Any", Auth()), cast("Any", by_header(Auth()))
            authenticates._authenticate_handler = _raises(error)
            authorises._global_handlers.append(_raises(error))
            for made in (authenticates, authorises):
                api.app.state.policy = Policy(made)
                caplog.clear()
                with caplog.at_level(logging.ERROR, "turns.api"):
                    answered = await api.http.get(
                        "/threads/abandoned", headers={**as_("a"), "origin": "http://x"}
                    )
                assert (answered.status_code, answered.json()) == (status, {"detail": detail})
                assert answered.headers["access-control-allow-origin"] == "*"
                assert ("the secret" in caplog.text) is isinstance(error, ValueError)


ODD_USERS: list[object] = [
    {},
    {"identity": ""},
    {"identity": 3},
    7,
    {"identity": "a", "x": object()},
    {"identity": "a", "x": "\0"},
    {"identity": "a", "x": "y" * 70_000},
]


async def test_no_user(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, by_header(Auth())) as api:
        for given in (None, *ODD_USERS):
            made = cast("Any", Auth())

            async def who(given: object = given) -> Any:
                return given

            made.authenticate(who)
            api.app.state.policy = Policy(made)
            answered = await api.http.post("/threads", json={})
            assert answered.status_code == (401 if given is None else 500), given


async def test_the_most_specific_decides(database_url: str, temporal: str) -> None:
    made = by_header(Auth())
    asked: list[tuple[str, str, Any]] = []

    def noting(answer: Any) -> Callable[..., Any]:
        async def handler(ctx: Any, value: Any) -> Any:
            assert ctx.user.identity == "alice" and ctx.user["identity"] == "alice"
            asked.append((ctx.resource, ctx.action, value))
            return answer

        return handler

    made.on(cast("Any", noting(False)))
    made.on(actions="read")(noting(None))
    made.on.threads(actions=["search", "update"])(cast("Any", noting(True)))
    made.on.threads.create(cast("Any", noting(None)))
    made.on.threads.create_run(cast("Any", noting(False)))
    async with serving(database_url, temporal, made) as api:
        thread = (await api.http.post("/threads", json={"metadata": {"a": 1}}, headers=as_("alice"))).json()
        at = f"/threads/{thread['thread_id']}"
        for method, path, body, status in (
            ("POST", f"{at}/runs", {"assistant_id": "graph"}, 403),
            ("GET", at, None, 200),
            ("POST", f"{at}/runs/{fresh()}/cancel?action=rollback", None, 404),
            ("GET", f"{at}/runs", None, 200),
            ("POST", "/threads/count", {"status": "idle"}, 200),
            ("DELETE", at, None, 403),
            ("GET", "/assistants/graph", None, 200),
            ("POST", "/assistants/search", {}, 403),
        ):
            answered = await api.http.request(method, path, json=body, headers=as_("alice"))
            assert answered.status_code == status, (path, answered.text)
            if status == 403:
                assert answered.json() == {"detail": "Forbidden"}
    assert [(resource, action) for resource, action, _ in asked] == [
        ("threads", "create"),
        ("threads", "create_run"),
        ("threads", "read"),
        ("threads", "update"),
        ("threads", "search"),
        ("threads", "search"),
        ("threads", "delete"),
        ("assistants", "read"),
        ("assistants", "search"),
    ]
    values = [value for _, _, value in asked]
    assert values[0]["metadata"] == {"a": 1} and values[0]["if_exists"] == "raise"
    assert values[1]["kwargs"]["stream_mode"] == ["values"] and values[1]["multitask_strategy"] == "enqueue"
    assert str(values[2]["thread_id"]) == thread["thread_id"] and values[3]["action"] == "rollback"
    assert values[5]["status"] == "idle"


async def test_filters(database_url: str, temporal: str) -> None:
    made = by_header(Auth())

    @made.on.threads
    async def members(ctx: Any, value: Any) -> Any:
        assert ctx.user.identity != "banned", "a text that nobody else sees"
        return {"team": {"$eq": "red"}, "members": {"$contains": ctx.user.identity}}

    @made.on.assistants
    async def odd(ctx: Any, value: Any) -> Any:
        return {"owner": None}

    async with serving(database_url, temporal, made) as api:

        async def asks(name: str, method: str, path: str, body: Any = None) -> httpx.Response:
            return await api.http.request(method, path, json=body, headers=as_(name))

        both = {"metadata": {"members": ["alice", "bob"], "team": "blue"}}
        shared = (await asks("alice", "POST", "/threads", both)).json()
        assert shared["metadata"] == {"members": ["alice", "bob"], "team": "red"}
        own = (await asks("alice", "POST", "/threads", {})).json()
        assert own["metadata"] == {"members": ["alice"], "team": "red"}
        others = await asks("alice", "POST", "/threads", {"metadata": {"members": ["bob"]}})
        assert others.status_code == 403
        for name, count in (("alice", 2), ("bob", 1), ("carol", 0)):
            assert (await asks(name, "POST", "/threads/count", {})).json() == count
            ids = [shared["thread_id"], own["thread_id"]]
            for search in ({}, {"ids": ids}, {"sort_by": "status"}):
                assert len((await asks(name, "POST", "/threads/search", search)).json()) == count
        at = f"/threads/{shared['thread_id']}"
        assert (await asks("bob", "PATCH", at, {"metadata": {"x": 1}})).json()["metadata"]["x"] == 1
        # Nobody gives away, or plants, a thread: what it becomes must be theirs, too.
        assert (await asks("bob", "PATCH", at, {"metadata": {"members": ["carol"]}})).status_code == 403
        assert (await asks("carol", "PATCH", at, {"metadata": {"members": ["carol"]}})).status_code == 404
        made_by_run = fresh()
        run: dict[str, Any] = {"assistant_id": "graph", "input": {"trail": []}, "if_not_exists": "create"}
        assert (await asks("carol", "POST", f"/threads/{made_by_run}/runs/wait", run)).status_code == 200
        assert (await asks("carol", "GET", f"/threads/{made_by_run}")).json()["metadata"]["members"] == [
            "carol"
        ]
        assert (await asks("bob", "POST", f"/threads/{made_by_run}/runs/wait", run)).status_code == 404
        banned = await asks("banned", "GET", at)
        assert (banned.status_code, banned.json()) == (403, {"detail": "Forbidden"})
        # A filter on nothing is a handler's mistake: it shows nothing, rather than everything.
        assert (await asks("alice", "POST", "/assistants/search", {})).status_code == 500


async def test_same_key_of_two_users(database_url: str, temporal: str) -> None:
    made = by_header(Auth())

    @made.on.threads
    async def own(ctx: Any, value: Any) -> Any:
        return {"owner": ctx.user.identity}

    async with serving(database_url, temporal, made) as api:
        body = {"assistant_id": "graph", "input": {"trail": ["x"]}}
        thread = fresh()
        places: list[str] = []
        for name in ("alice", "bob", "alice"):
            headers = {**as_(name), "Idempotency-Key": "k"}
            answered = await api.http.post("/runs/wait", json=body, headers=headers)
            assert answered.json() == {"trail": ["x", "plan"]}
            places.append(answered.headers["location"])
            on_thread = {**body, "if_not_exists": "create"}
            answered = await api.http.post(f"/threads/{thread}/runs/wait", json=on_thread, headers=headers)
            assert answered.status_code == (404 if name == "bob" else 200)
        assert places[0] == places[2] != places[1]


def test_set_up_wrongly() -> None:
    with pytest.raises(ConfigError, match=r"no @auth\.authenticate"):
        Policy(Auth())
    made = Auth()

    async def who(token: str) -> str:
        return token

    made.authenticate(who)
    with pytest.raises(ConfigError, match='asks for "token"'):
        Policy(made)
