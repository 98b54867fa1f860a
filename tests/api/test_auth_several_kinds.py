"""Routes that touch rows of several kinds ask about each: assistants of runs, threads of assistants, copies, store."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import httpx
import pytest
from langgraph_sdk import Auth

from api.keys import by_key
from tests.api.graphs import steps
from tests.api.serving import fresh, in_front_of
from tests.stack import stack

auth = Auth()
"""Replaced by each test; `asking` names it in the project."""


class Api:
    """Requests by a name."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def asks(self, name: str, method: str, path: str, body: Any = None) -> httpx.Response:
        return await self._http.request(method, path, json=body, headers={"x-api-key": name})

    async def runs(self, name: str, thread: str, assistant: str) -> httpx.Response:
        body: dict[str, Any] = {"assistant_id": assistant, "input": {"trail": []}, "if_not_exists": "create"}
        return await self.asks(name, "POST", f"/threads/{thread}/runs/wait", body)


@contextlib.asynccontextmanager
async def asking(database_url: str, temporal: str, made: Auth) -> AsyncGenerator[Api]:
    global auth
    auth = made
    async with stack(database_url, temporal, {"graph": steps("plan")}) as behind:
        behind.project.auth_target = "tests.api.test_auth_several_kinds:auth"
        async with in_front_of(behind) as served:
            yield Api(served.http)


def _open(*, threads: bool = False) -> Auth:
    """Everybody may do anything; with `threads`, threads are their makers'."""
    made = Auth()

    @made.authenticate
    async def who(headers: dict[bytes, bytes]) -> str:
        return headers[b"x-api-key"].decode()

    if threads:

        @made.on.threads
        async def own(ctx: Any, value: Any) -> Any:
            return {"owner": ctx.user.identity}

    return made


KEYS = "alice:alice,mallory:mallory,al:al,a_ice:a_ice"


async def test_a_run_with_an_assistant_of_anothers(database_url: str, temporal: str) -> None:
    async with asking(database_url, temporal, by_key(KEYS)) as api:
        assistant = (await api.asks("alice", "POST", "/assistants", {"graph_id": "graph"})).json()
        named = str(assistant["assistant_id"])
        assert assistant["metadata"] == {"owner": "alice"}
        for name, status in (("mallory", 404), ("alice", 200)):
            answered = await api.runs(name, fresh(), named)
            assert answered.status_code == status, answered.text
            stateless: dict[str, Any] = {"assistant_id": named, "input": {"trail": []}}
            assert (await api.asks(name, "POST", "/runs/wait", stateless)).status_code == status
            unknown = await api.runs(name, fresh(), fresh())
            assert unknown.status_code == 404
            if status == 404:
                assert answered.json() == unknown.json()
            assert (await api.runs(name, fresh(), "graph")).status_code == 200
        # Nothing was recorded, nor was a thread made for it.
        assert (await api.asks("mallory", "POST", "/threads/count", {})).json() == 1


async def test_an_assistant_stays_whose_it_is(database_url: str, temporal: str) -> None:
    made = _open()

    @made.on.assistants
    async def team(ctx: Any, value: Any) -> Any:
        return {"members": {"$contains": ctx.user.identity}}

    async with asking(database_url, temporal, made) as api:
        body = {"graph_id": "graph", "metadata": {"members": ["alice", "bob"]}}
        at = "/assistants/" + (await api.asks("alice", "POST", "/assistants", body)).json()["assistant_id"]
        given_away = await api.asks("bob", "PATCH", at, {"metadata": {"members": ["carol"]}})
        assert given_away.status_code == 403
        assert (await api.asks("bob", "PATCH", at, {"metadata": {"members": ["bob"]}})).status_code == 200
        assert (await api.asks("alice", "GET", at)).status_code == 404
        assert (await api.asks("bob", "PATCH", at, {"name": "bob's"})).json()["version"] == 3
        # The first version names bob; the second, once alice has the assistant to herself, does not name her.
        assert (await api.asks("bob", "POST", f"{at}/latest", {"version": 1})).status_code == 200
        hers = await api.asks("alice", "PATCH", at, {"metadata": {"members": ["alice"]}})
        assert hers.json()["version"] == 4
        assert (await api.asks("alice", "POST", f"{at}/latest", {"version": 2})).status_code == 404
        assert (await api.asks("alice", "GET", at)).json()["version"] == 4


async def test_threads_of_an_assistant(database_url: str, temporal: str) -> None:
    async with asking(database_url, temporal, _open(threads=True)) as api:
        shared = (await api.asks("alice", "POST", "/assistants", {"graph_id": "graph"})).json()
        named = str(shared["assistant_id"])
        threads = {"alice": fresh(), "bob": fresh()}
        for name, thread in threads.items():
            assert (await api.runs(name, thread, named)).status_code == 200
        gone = await api.asks("bob", "DELETE", f"/assistants/{named}?delete_threads=true")
        assert gone.status_code == 204
        for name, status in (("alice", 200), ("bob", 404)):
            assert (await api.asks(name, "GET", f"/threads/{threads[name]}")).status_code == status


@pytest.mark.parametrize("creates", ["stamps", "changes", "refuses"])
async def test_a_copy_is_its_makers(database_url: str, temporal: str, creates: str) -> None:
    made = _open(threads=True)
    asked: list[dict[str, Any]] = []

    @made.on.threads.read
    async def everything(ctx: Any, value: Any) -> Any:
        return None

    @made.on.threads.create
    async def own(ctx: Any, value: Any) -> Any:
        asked.append(dict(value))
        if creates == "refuses":
            return ctx.user.identity != "bob"
        if creates == "changes":
            value["metadata"] = {"owner": ctx.user.identity, "by": "handler"}
            return None
        return {"owner": ctx.user.identity}

    async with asking(database_url, temporal, made) as api:
        thread = fresh()
        assert (await api.runs("alice", thread, "graph")).status_code == 200
        before = (await api.asks("alice", "GET", f"/threads/{thread}")).json()
        asked.clear()
        copied = await api.asks("bob", "POST", f"/threads/{thread}/copy")
        assert asked[0]["metadata"] == before["metadata"] and asked[0]["if_exists"] == "raise"
        if creates == "refuses":
            assert copied.status_code == 403
            return
        own_one = copied.json()
        assert own_one["thread_id"] == str(asked[0]["thread_id"]) != thread
        kept = {name: before["metadata"][name] for name in ("graph_id", "assistant_id")}
        added = {"by": "handler"} if creates == "changes" else {}
        assert own_one["metadata"] == {"owner": "bob", **kept, **added}
        assert own_one["values"] == before["values"] == {"trail": ["plan"]}
        assert (await api.runs("bob", own_one["thread_id"], "graph")).status_code == 200
        assert (await api.runs("alice", own_one["thread_id"], "graph")).status_code == 404


async def test_pruned_are_only_ones_own(database_url: str, temporal: str) -> None:
    async with asking(database_url, temporal, by_key(KEYS)) as api:
        ids = [(await api.asks(n, "POST", "/threads", {})).json()["thread_id"] for n in ("alice", "mallory")]
        for strategy in ("keep_latest", "delete"):
            answered = await api.asks(
                "mallory", "POST", "/threads/prune", {"thread_ids": ids, "strategy": strategy}
            )
            assert answered.json() == {"pruned_count": 1}
        assert (await api.asks("alice", "GET", f"/threads/{ids[0]}")).status_code == 200
        assert (await api.asks("mallory", "GET", f"/threads/{ids[1]}")).status_code == 404


FILTER = {"owner": "alice"}


async def _keys_found(api: Api, name: str, prefix: Sequence[str] = ()) -> list[str]:
    answered = await api.asks(name, "POST", "/store/items/search", {"namespace_prefix": prefix})
    return [item["key"] for item in answered.json()["items"]]


async def test_store_of_a_name(database_url: str, temporal: str) -> None:
    async with asking(database_url, temporal, by_key(KEYS)) as api:
        # Names that begin like another, or match it as a pattern, are other names.
        for name in ("alice", "al", "a_ice"):
            item: dict[str, Any] = {"namespace": [name, "notes"], "key": f"of {name}", "value": {}}
            assert (await api.asks(name, "PUT", "/store/items", item)).status_code == 204
        for name in ("alice", "al", "a_ice"):
            assert await _keys_found(api, name) == await _keys_found(api, name, [name]) == [f"of {name}"]
            found = await api.asks(name, "POST", "/store/namespaces", {})
            assert found.json() == {"namespaces": [[name, "notes"]]}
            own = await api.asks(name, "GET", f"/store/items?namespace={name}.notes&key=of%20{name}")
            assert own.json()["key"] == f"of {name}"
        hers = "namespace=alice.notes&key=of%20alice"
        for query in (
            hers,
            f"namespace=&{hers}",
            f"{hers}&namespace=al",
            "namespace=alice&namespace=notes&key=of%20alice",
        ):
            assert (await api.asks("al", "GET", f"/store/items?{query}")).status_code == 403, query
        both = await api.asks("al", "GET", f"/store/items?namespace=al&{hers}")
        assert both.status_code == 200 and both.json() is None  # "al.alice.notes"
        for prefix in ("*", "alice"):
            assert (
                await api.asks("al", "POST", "/store/namespaces", {"prefix": [prefix]})
            ).status_code == 403
        suffix = await api.asks("al", "POST", "/store/namespaces", {"suffix": ["notes"]})
        assert suffix.json() == {"namespaces": [["al", "notes"]]}
        assert (await api.asks("al", "PUT", "/store/items", {**item, "namespace": []})).status_code == 403


async def test_what_a_handler_of_the_store_is_told(database_url: str, temporal: str) -> None:
    made = _open()
    asked: list[tuple[str, Any]] = []

    @made.on.store
    async def below(ctx: Any, value: Any) -> Any:
        asked.append((ctx.action, value["namespace"]))
        value["namespace"] = (ctx.user.identity, *value["namespace"])

    async with asking(database_url, temporal, made) as api:
        item = {"namespace": ["notes"], "key": "k", "value": {"a": 1}}
        assert (await api.asks("alice", "PUT", "/store/items", item)).status_code == 204
        got = (await api.asks("alice", "GET", "/store/items?namespace=notes&key=k")).json()
        assert (got["namespace"], got["value"]) == (["alice", "notes"], {"a": 1})
        assert (await api.asks("bob", "GET", "/store/items?namespace=notes&key=k")).json() is None
        assert await _keys_found(api, "alice", ["notes"]) == ["k"]
        assert await _keys_found(api, "bob", ["notes"]) == []
        await api.asks("bob", "DELETE", "/store/items", {"namespace": ["notes"], "key": "k"})
        spaces = await api.asks("alice", "POST", "/store/namespaces", {"prefix": ["notes"]})
        assert spaces.json() == {"namespaces": [["alice", "notes"]]}
        await api.asks("alice", "DELETE", "/store/items", {"namespace": ["notes"], "key": "k"})
        assert await _keys_found(api, "alice") == []
    actions = ("put", "get", "get", "search", "search", "delete", "list_namespaces", "delete", "search")
    assert [action for action, _ in asked] == list(actions)
    assert [namespace for _, namespace in asked] == [("notes",)] * 8 + [()]


@pytest.mark.parametrize("left", [FILTER, "alice", ("alice", 1)])
async def test_a_handler_that_cannot_be_followed(
    database_url: str, temporal: str, left: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A filter, which items have no metadata for, or no namespace: nothing is shown."""
    made = _open()

    @made.on.store
    async def odd(ctx: Any, value: Any) -> Any:
        if left == FILTER:
            return FILTER
        value["namespace"] = left
        return None

    async with asking(database_url, temporal, made) as api:
        with caplog.at_level(logging.ERROR, "turns.api"):
            attempts: list[tuple[str, str, Any]] = [
                ("GET", "/store/items?namespace=alice&key=k", None),
                ("POST", "/store/items/search", {}),
            ]
            for method, path, body in attempts:
                caplog.clear()
                answered = await api.asks("alice", method, path, body)
                assert (answered.status_code, answered.json()) == (500, {"detail": "Internal Server Error"})
                assert "store" in caplog.text
