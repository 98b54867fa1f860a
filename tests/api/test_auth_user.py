"""The user of a run, as its nodes see them; and where else they are not seen."""

from __future__ import annotations

import copy
import json
from typing import Any, cast

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime

from adapter.user import AuthUser
from adapter.wire import dumps
from tests.api.graphs import State, steps
from tests.api.serving import fresh, in_front_of, serving
from tests.stack import stack

ALICE = {"x-api-key": "alice"}
SPOOFED = {"langgraph_auth_user": {"identity": "root"}, "langgraph_auth_user_id": "root", "mine": 1}


class Seen:
    """A graph, with a subgraph, whose nodes note what they are told about the user."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def graph(self) -> Any:
        async def note(state: State, config: RunnableConfig, runtime: Runtime[Any]) -> Any:
            configurable = config.get("configurable", {})
            info = runtime.server_info
            self.told.append(
                {
                    **{
                        k: v
                        for k, v in configurable.items()
                        if k in SPOOFED or k.endswith(("user_id", "ions"))
                    },
                    "server_info": info and info.user,
                }
            )
            return {"trail": ["note"]}

        inner = StateGraph(State)
        inner.add_node("inside", cast("Any", note))
        inner.add_edge(START, "inside")
        builder = StateGraph(State)
        builder.add_node("outside", cast("Any", note))
        builder.add_node("child", inner.compile())
        builder.add_edge(START, "outside")
        builder.add_edge("outside", "child")
        return builder.compile()


async def test_nodes_see_the_user(database_url: str, temporal: str) -> None:
    seen = Seen()
    async with stack(database_url, temporal, {"graph": seen.graph()}) as behind:
        behind.project.auth_target = "tests.api.authenticated:auth"
        async with in_front_of(behind) as api:
            thread, shown = fresh(), b""
            for configurable in ({"configurable": SPOOFED}, {}):
                body: dict[str, Any] = {
                    "assistant_id": "graph",
                    "input": {"trail": []},
                    "config": configurable,
                    "if_not_exists": "create",
                    "stream_mode": ["values", "debug", "checkpoints", "tasks", "updates"],
                }
                path = f"/threads/{thread}/runs/stream"
                shown += (await api.http.post(path, json=body, headers=ALICE)).content
            runs = (await api.http.get(f"/threads/{thread}/runs", headers=ALICE)).json()
            for path in ("", "/state", "/history", "/runs"):
                shown += (await api.http.get(f"/threads/{thread}{path}", headers=ALICE)).content
            history = await behind.history(thread)
    assert len(seen.told) == 4 and [told.get("mine") for told in seen.told] == [1, 1, None, None]
    for told in seen.told:
        user = told["langgraph_auth_user"]
        assert user is not None and user == told["server_info"]
        assert (user.identity, user["token"], user.token) == ("alice", "token-of-alice", "token-of-alice")
        assert user.get("none", 1) == 1 and "none" not in user and dict(user)["token"] == "token-of-alice"
        assert (user.display_name, user.is_authenticated, user.permissions) == ("alice", True, ["talk"])
        assert told["langgraph_auth_user_id"] == told["user_id"] == "alice"
        assert told["langgraph_auth_permissions"] == ["talk"]
    assert runs[0]["kwargs"]["config"]["configurable"]["langgraph_auth_user_id"] == "alice"
    # What the authenticator knows of a user may be credentials.
    assert b"token-of-alice" not in shown and b"root" not in shown
    assert "alice" not in json.dumps(history.to_json())


@pytest.mark.parametrize("keys", ["", "alice:alice"])
async def test_nobody_says_who_they_are(database_url: str, temporal: str, keys: str) -> None:
    seen = Seen()
    async with serving(database_url, temporal, {"graph": seen.graph()}, api_keys=keys) as api:
        for field in ("config", "context"):
            given: Any = {"configurable": SPOOFED} if field == "config" else SPOOFED
            body: dict[str, Any] = {"assistant_id": "graph", "input": {"trail": []}, field: given}
            assert (await api.http.post("/runs/wait", json=body, headers=ALICE)).status_code == 200
        # Whatever brought it into the row.
        await api.stack.turn(thread=fresh(), input={"trail": []}, config={"configurable": SPOOFED})
        for _ in ("inside", "outside"):
            assert "langgraph_auth_user_id" not in seen.told.pop()
    assert len(seen.told) == 4
    for told in seen.told:
        assert told["mine"] == 1 and "root" not in str(told)
        assert told.get("langgraph_auth_user_id") == ("alice" if keys else None)


def test_credentials_are_not_shown() -> None:
    user = AuthUser({"identity": "alice", "token": "secret"})
    for beside in ("x", "\ud800"):  # the second takes the way around orjson
        shown = dumps({"user": user, "beside": beside})
        assert '{"identity":"alice"}' in shown and "secret" not in shown
    assert "secret" not in repr(user)
    assert copy.deepcopy(user).token == "secret"


async def test_keys(database_url: str, temporal: str) -> None:
    keys = "alice:one, alice:two ,bob:th:ree"
    async with serving(database_url, temporal, {"graph": steps("plan")}, api_keys=keys) as api:
        for headers, name in (
            ({"x-api-key": "one"}, "alice"),
            ({"authorization": "bearer two"}, "alice"),
            ({"x-api-key": "wrong", "authorization": "Bearer th:ree"}, "bob"),
        ):
            body = {"metadata": {"owner": "carol", "created_by": "me"}}
            thread = (await api.http.post("/threads", json=body, headers=headers)).json()
            assert thread["metadata"] == {"owner": name, "created_by": "me"}
            at = f"/threads/{thread['thread_id']}"
            await api.http.patch(at, json={"metadata": {"owner": "carol"}}, headers=headers)
            assert (await api.http.get(at, headers=headers)).json()["metadata"]["owner"] == name
        for wrong in ({}, {"x-api-key": ""}, {"x-api-key": "alice"}, {"authorization": "one"}):
            answered = await api.http.post("/threads", json={}, headers=wrong)
            assert (answered.status_code, answered.json()) == (401, {"detail": "Unauthorized"})
            assert answered.headers["www-authenticate"] == "Bearer"
        names = await api.http.post("/assistants/search", json={}, headers={"x-api-key": "one"})
        assert [a["name"] for a in names.json()] == ["graph"]
