"""One assistant per graph, found by id and by name; drawings and schemas."""

from __future__ import annotations

from tests.api.graphs import chatting, nested, steps
from tests.api.serving import Serving, fresh

GRAPHS = {"agent": steps("plan"), "chat": chatting(), "parent": nested()}


async def test_found(api: Serving) -> None:
    agent = (await api.http.get("/assistants/agent")).json()
    assert agent == {
        "assistant_id": "fe096781-5601-53d2-b2f6-0d3403f7e9ca",
        "graph_id": "agent",
        "config": {},
        "context": {},
        "metadata": {"created_by": "system"},
        "name": "agent",
        "created_at": agent["created_at"],
        "updated_at": agent["created_at"],
        "version": 1,
        "description": None,
    }
    assert (await api.http.get(f"/assistants/{agent['assistant_id']}")).json() == agent
    assert await api.sdk.assistants.search(graph_id="agent") == [agent]
    found = await api.http.post("/assistants/search", json={"limit": 1, "sort_by": "name"})
    assert [a["name"] for a in found.json()] == ["parent"]
    assert (found.headers["x-pagination-total"], found.headers["x-pagination-next"]) == ("2", "1")
    select = {"select": ["graph_id"], "name": "AGE", "metadata": {"created_by": "system"}}
    assert (await api.http.post("/assistants/search", json=select)).json() == [{"graph_id": "agent"}]
    assert (await api.http.post("/assistants/search", json={"metadata": {"a": 1}})).json() == []
    assert (await api.http.post("/assistants/count", json={})).json() == 3
    values = await api.wait(await api.thread(), agent["assistant_id"], input={"trail": ["x"]})
    assert values == {"trail": ["x", "plan"]}


async def test_refusals(api: Serving) -> None:
    for path in ("nope", "nope/graph", "nope/schemas", "nope/subgraphs"):
        answered = await api.http.get(f"/assistants/{path}")
        detail = "Invalid assistant ID: must be a UUID"
        assert (answered.status_code, answered.json()) == (422, {"detail": detail})
    unknown = await api.http.get(f"/assistants/{fresh()}")
    assert (unknown.status_code, unknown.json()) == (404, {"detail": "Not Found"})
    no_graph = await api.http.post("/assistants/search", json={"graph_id": "nope"})
    detail = "Graph 'nope' not found. Expected one of: ['agent', 'chat', 'parent']"
    assert (no_graph.status_code, no_graph.json()) == (404, {"detail": detail})
    assert (await api.http.get("/assistants/agent/graph?xray=x")).status_code == 422


async def test_drawing(api: Serving) -> None:
    assert (await api.http.get("/assistants/agent/graph")).json() == {
        "nodes": [
            {"id": "__start__", "type": "runnable", "data": {"name": "__start__"}},
            {"id": "plan", "type": "runnable", "data": {"name": "plan"}},
            {"id": "__end__"},
        ],
        "edges": [
            {"source": "__start__", "target": "plan"},
            {"source": "plan", "target": "__end__"},
        ],
    }
    for xray in ("true", "1"):
        inner = (await api.http.get("/assistants/parent/graph", params={"xray": xray})).json()
        assert "child:sub_ask" in [node["id"] for node in inner["nodes"]]
    flat = (await api.http.get("/assistants/parent/graph", params={"xray": "false"})).json()
    assert "child" in [node["id"] for node in flat["nodes"]]


async def test_schemas(api: Serving) -> None:
    schemas = (await api.http.get("/assistants/agent/schemas")).json()
    assert schemas["graph_id"] == "agent"
    for name in ("input_schema", "output_schema", "state_schema"):
        assert set(schemas[name]["properties"]) == {"trail", "answer", "n"}
    assert (schemas["config_schema"], schemas["context_schema"]) == ({}, None)
    children = (await api.http.get("/assistants/parent/subgraphs")).json()
    assert set(children) == {"child"} and "trail" in children["child"]["state_schema"]["properties"]
    assert (await api.http.get("/assistants/parent/subgraphs/child?recurse=true")).json() == children
    assert (await api.http.get("/assistants/parent/subgraphs/zzz")).json() == {}
