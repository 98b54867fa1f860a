"""A run has its assistant's config, context and metadata, under what its own request says."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph_sdk.errors import NotFoundError
from langgraph_sdk.schema import Config
from typing_extensions import TypedDict

from adapter.graphs import Project
from api.app import build_app
from api.assistants import assistant_id_of
from tests.api.graphs import Held, steps
from tests.api.serving import Serving, fresh, in_front_of, serving, uvicorn_serving
from tests.servers import free_port


class Context(TypedDict, total=False):
    lang: str
    model: str


class State(TypedDict, total=False):
    seen: dict[str, Any]


def _looking() -> Any:
    async def look(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> Any:
        given = config.get("configurable", {})
        metadata = config.get("metadata", {})
        seen = {
            "context": dict(runtime.context or {}),
            "configurable": {key: given[key] for key in ("lang", "model", "other") if key in given},
            "metadata": {
                key: metadata[key] for key in ("team", "run", "both", "in_config") if key in metadata
            },
            "tags": sorted(config.get("tags") or []),
        }
        return {"seen": seen}

    builder = StateGraph(State, context_schema=Context)
    builder.add_node("look", cast("Any", look))
    builder.add_edge(START, "look")
    return builder.compile()


GRAPHS = {"graph": _looking(), "steps": steps("plan")}


async def test_the_request_wins_key_by_key(api: Serving) -> None:
    config = {
        "configurable": {"lang": "en", "model": "m", "other": 1},
        "tags": ["t"],
        "recursion_limit": 7,
        "metadata": {"in_config": 1},
    }
    own = await api.sdk.assistants.create(
        "graph",
        config=cast("Config", config),
        metadata={"team": "a", "both": "assistant"},
    )
    thread = await api.thread()
    alone = await api.wait(thread, own["assistant_id"], input={"seen": {}})
    assert alone["seen"] == {
        "context": {"lang": "en", "model": "m"},
        "configurable": {"lang": "en", "model": "m", "other": 1},
        "metadata": {"team": "a", "both": "assistant", "in_config": 1},
        "tags": ["t"],
    }
    over = await api.wait(
        thread,
        own["assistant_id"],
        input={"seen": {}},
        config={"configurable": {"lang": "fr"}, "tags": ["mine"]},
        metadata={"run": 1, "both": "run"},
    )
    assert over["seen"] == {
        "context": {"lang": "fr", "model": "m"},
        "configurable": {"lang": "fr", "model": "m", "other": 1},
        "metadata": {"team": "a", "both": "run", "run": 1, "in_config": 1},
        "tags": ["mine"],
    }
    context = await api.wait(thread, own["assistant_id"], input={"seen": {}}, context={"model": "n"})
    assert context["seen"]["context"] == {"lang": "en", "model": "n"}

    run = (await api.sdk.runs.list(thread))[0]
    assert run["assistant_id"] == own["assistant_id"]
    assert (run["metadata"] or {})["team"] == "a"
    assert cast("Any", run)["kwargs"]["config"]["recursion_limit"] == 7
    shown = await api.sdk.threads.get(thread)
    assert shown["metadata"] == {"graph_id": "graph", "assistant_id": own["assistant_id"]}


async def test_context_of_a_new_version(api: Serving) -> None:
    own = (await api.sdk.assistants.create("graph", context={"lang": "en"}))["assistant_id"]
    for lang in ("en", "fr"):
        await api.sdk.assistants.update(own, context={"lang": lang})
        seen = (await api.wait(await api.thread(), own, input={"seen": {}}))["seen"]
        assert (seen["context"], seen["configurable"]) == ({"lang": lang}, {"lang": lang})
    await api.sdk.assistants.update("graph", context={"lang": "it"})
    assert (await api.wait(await api.thread(), input={"seen": {}}))["seen"]["context"] == {"lang": "it"}


async def test_a_graphs_own_assistant_is_changed_by_another_process(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"graph": _looking()}) as api:
        app = build_app(api.stack.settings, api.stack.project, client=api.stack.client)
        async with uvicorn_serving(app, free_port()) as other:
            thread, seen = await api.thread(), list[Any]()
            body: dict[str, Any] = {"assistant_id": "graph", "input": {"seen": {}}}
            for lang in ("en", "fr"):
                for url in (api.url, other):
                    ended = await api.http.post(f"{url}/threads/{thread}/runs/wait", json=body)
                    seen.append(ended.json()["seen"]["context"])
                await api.http.patch(f"{other}/assistants/graph", json={"context": {"lang": lang}})
            for url in (other, api.url):
                ended = await api.http.post(f"{url}/threads/{thread}/runs/wait", json=body)
                seen.append(ended.json()["seen"]["context"])
            assert seen == [{}, {}, {"lang": "en"}, {"lang": "en"}, {"lang": "fr"}, {"lang": "fr"}]
            await api.http.patch(f"{other}/assistants/graph", json={"context": {"lang": "it"}})
            stateless = await api.http.post(f"{api.url}/runs/wait", json=body)
            assert stateless.json()["seen"]["context"] == {"lang": "it"}


async def test_refusals_are_not_of_an_assistant_as_it_was(database_url: str, temporal: str) -> None:
    held = Held()
    async with serving(database_url, temporal, {"held": held.graph()}) as api:
        busy, missing = await api.thread(), fresh()
        key = {"Idempotency-Key": "k"}
        body: dict[str, Any] = {"assistant_id": "held", "input": {"trail": []}}
        rejecting = {**body, "multitask_strategy": "reject"}
        run = (await api.http.post(f"/threads/{busy}/runs", json=body, headers=key)).json()["run_id"]
        await held.started.wait()
        app = build_app(api.stack.settings, api.stack.project, client=api.stack.client)
        async with uvicorn_serving(app, free_port()) as other:

            async def sent(thread: str, said: dict[str, Any], headers: dict[str, str] | None = None) -> Any:
                # What this API remembers is old each time.
                changed = await api.http.patch(f"{other}/assistants/held", json={"metadata": {"n": fresh()}})
                assert changed.status_code == 200
                return await api.http.post(f"/threads/{thread}/runs", json=said, headers=headers)

            again = await sent(busy, body, key)
            assert (again.status_code, again.json()["run_id"]) == (200, run)
            assert (await sent(busy, {**body, "input": {"trail": ["other"]}}, key)).status_code == 409
            refused = await sent(busy, rejecting)
            assert (refused.status_code, refused.json()["detail"][:25]) == (409, "Thread is already running")
            assert (await sent(missing, body)).status_code == 404
            assert (await sent(missing, {**body, "if_not_exists": "create"})).status_code == 200
        held.go.set()
        assert cast("Any", await api.sdk.runs.join(busy, run))["trail"] == ["hold", "after"]


async def test_an_id_of_another_projects_graph_is_free(database_url: str, temporal: str) -> None:
    """Another process serves more graphs; once it is deleted, that graph's own assistant may be anybody's."""
    async with serving(database_url, temporal, {"graph": steps("plan")}) as api:
        gone = assistant_id_of("x")
        more = Project(Path("langgraph.json"), {}, {"graph": steps("plan"), "x": steps("plan")})
        app = build_app(api.stack.settings, more, client=api.stack.client)
        async with uvicorn_serving(app, free_port()) as other:
            assert (await api.http.get(f"{other}/assistants/x")).status_code == 200
        thread, body = await api.thread(), {"assistant_id": gone}
        assert (await api.http.post(f"/threads/{thread}/runs", json=body)).status_code == 404
        await api.sdk.assistants.delete(gone)
        await api.sdk.assistants.create("graph", assistant_id=gone)
        assert await api.wait(thread, gone, input={"trail": []}) == {"trail": ["plan"]}


async def test_where_a_run_starts_is_not_an_assistants_to_say(api: Serving) -> None:
    thread = await api.thread()
    await api.wait(thread, "steps", input={"trail": ["x"]})
    first = (await api.sdk.threads.get_history(thread))[-1]["checkpoint"]
    place = {"checkpoint_id": first["checkpoint_id"], "thread_id": fresh()}
    own = await api.sdk.assistants.create("steps", config={"configurable": place})
    values = await api.wait(thread, own["assistant_id"], input={"trail": ["y"]})
    assert values == {"trail": ["x", "plan", "y", "plan"]}


async def test_a_repeated_request_after_a_change_is_the_same_run(api: Serving) -> None:
    own = (await api.sdk.assistants.create("graph", context={"lang": "en"}))["assistant_id"]
    thread = await api.thread()
    body: dict[str, Any] = {"assistant_id": own, "input": {"seen": {}}}
    sent: list[dict[str, Any]] = []
    for _ in range(2):
        answered = await api.http.post(
            f"/threads/{thread}/runs", json=body, headers={"Idempotency-Key": "k1"}
        )
        assert answered.status_code == 200, answered.text
        sent.append(answered.json())
        await api.sdk.assistants.update(own, context={"lang": "fr"})
    assert sent[0]["run_id"] == sent[1]["run_id"]


async def test_a_factory_gets_it_too(database_url: str, temporal: str) -> None:
    def make(config: RunnableConfig) -> Any:
        return steps(*config.get("configurable", {}).get("nodes", ["plan"]))

    async with serving(database_url, temporal, {"graph": make}) as api:
        own = (await api.sdk.assistants.create("graph", config={"configurable": {"nodes": ["a", "b"]}}))[
            "assistant_id"
        ]
        drawn = await api.sdk.assistants.get_graph(own)
        assert [node["id"] for node in drawn["nodes"]] == ["__start__", "a", "b", "__end__"]
        thread = await api.thread()
        assert await api.wait(thread, own, input={"trail": []}) == {"trail": ["a", "b"]}
        assert (await api.sdk.threads.get_state(thread))["values"] == {"trail": ["a", "b"]}


@contextlib.asynccontextmanager
async def _without(api: Serving, graph: str) -> AsyncGenerator[Serving]:
    """Serves the same database with a project file that has lost a graph."""
    exports = {name: made for name, made in api.stack.project.exports.items() if name != graph}
    api.stack.project = Project(Path("langgraph.json"), {}, exports)
    async with in_front_of(api.stack) as later:
        yield later


async def test_its_graph_is_gone(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"old": steps("plan"), "new": steps("plan")}) as api:
        own = (await api.sdk.assistants.create("old", name="mine"))["assistant_id"]
        thread = await api.thread()
        async with _without(api, "old") as later:
            detail = "Graph 'old' not found. Expected one of: ['new']"
            for path in (f"/threads/{thread}/runs", f"/threads/{thread}/runs/stream", "/runs/wait"):
                answered = await later.http.post(path, json={"assistant_id": own})
                assert (answered.status_code, answered.json()) == (404, {"detail": detail})
            for part in ("graph", "schemas", "subgraphs"):
                answered = await later.http.get(f"/assistants/{own}/{part}")
                assert (answered.status_code, answered.json()) == (404, {"detail": detail})
            # It can be found and given another graph; the graph's own assistant is nobody's any more.
            assert [a["name"] for a in await later.sdk.assistants.search()] == ["mine", "new"]
            await later.sdk.assistants.update(own, graph_id="new")
            assert await later.wait(thread, own, input={"trail": []}) == {"trail": ["plan"]}


async def test_deleted_with_its_threads(database_url: str, temporal: str) -> None:
    held = Held()
    async with serving(database_url, temporal, {"graph": steps("plan"), "held": held.graph()}) as api:
        own = (await api.sdk.assistants.create("held"))["assistant_id"]
        other, kept = await api.thread(), await api.thread()
        await api.wait(kept, input={"trail": []})
        await api.run(other, own, input={"trail": []})
        await held.started.wait()
        await api.sdk.assistants.delete(own, delete_threads=True)
        await held.stopped.wait()
        with pytest.raises(NotFoundError):
            await api.sdk.threads.get(other)
        assert (await api.sdk.threads.get(kept))["thread_id"] == kept
        answered = await api.http.post(f"/threads/{kept}/runs", json={"assistant_id": own})
        assert (answered.status_code, answered.json()) == (404, {"detail": "Thread or assistant not found."})


async def test_a_run_under_way_outlives_its_assistant(database_url: str, temporal: str) -> None:
    held = Held()
    async with serving(database_url, temporal, {"held": held.graph()}) as api:
        own = (await api.sdk.assistants.create("held"))["assistant_id"]
        thread = await api.thread()
        run = await api.run(thread, own, input={"trail": []})
        await held.started.wait()
        await api.sdk.assistants.delete(own)
        held.go.set()
        assert (await api.sdk.runs.join(thread, run)) == {"trail": ["hold", "after"], "n": 1}
