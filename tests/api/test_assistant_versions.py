"""Assistants of a client's own: made, changed by new versions, gone back to, deleted."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph_sdk.errors import ConflictError, NotFoundError

from tests.api.graphs import steps
from tests.api.serving import Serving, fresh, serving

GRAPHS = {"agent": steps("plan"), "other": steps("write")}


async def _refused(api: Serving, method: str, path: str, body: Any = None) -> tuple[int, str]:
    answered = await api.http.request(method, path, json=body)
    return answered.status_code, answered.json()["detail"]


async def test_life(api: Serving) -> None:
    assistants = api.sdk.assistants
    made = await assistants.create(
        "agent",
        name="My A",
        config={"configurable": {"k": "v"}, "tags": ["t"]},
        metadata={"x": 1},
        description="d",
    )
    own = made["assistant_id"]
    assert made == {
        "assistant_id": own,
        "graph_id": "agent",
        "config": {"configurable": {"k": "v"}, "tags": ["t"]},
        "context": {"k": "v"},
        "metadata": {"x": 1},
        "name": "My A",
        "created_at": made["created_at"],
        "updated_at": made["created_at"],
        "version": 1,
        "description": "d",
    }
    assert await assistants.get(own) == made

    second = await assistants.update(own, name="B2", metadata={"y": 2})
    changed = {"name": "B2", "metadata": {"x": 1, "y": 2}, "version": 2}
    assert second == {**made, **changed, "updated_at": second["updated_at"]}
    assert second["updated_at"] > made["updated_at"]
    third = await assistants.update(own, graph_id="other", context={"c": 3})
    assert (third["graph_id"], third["version"]) == ("other", 3)
    assert third["context"] == {"c": 3}
    assert third["config"] == {"configurable": {"c": 3}, "tags": ["t"]}

    versions = await assistants.get_versions(own, limit=2)
    assert [v["version"] for v in versions] == [3, 2]
    assert "updated_at" not in versions[0]
    (first,) = await assistants.get_versions(own, limit=10, offset=2)
    assert {**first, "updated_at": made["updated_at"]} == made
    assert [v["version"] for v in await assistants.get_versions(own, metadata={"y": 2})] == [3, 2]

    back = await assistants.set_latest(own, 1)
    assert {**back, "updated_at": made["updated_at"]} == made
    # A new version is built on the one that is used, and counted after the newest.
    fourth = await assistants.update(own, name="B4")
    assert (fourth["version"], fourth["graph_id"], fourth["metadata"]) == (4, "agent", {"x": 1})

    await assistants.delete(own)
    with pytest.raises(NotFoundError):
        await assistants.get(own)


async def test_context_and_configurable_stand_for_each_other(api: Serving) -> None:
    assistants = api.sdk.assistants
    made = await assistants.create("agent", context={"model_name": "m"})
    assert (made["name"], made["description"]) == ("Untitled", None)
    assert (made["config"], made["context"]) == (
        {"configurable": {"model_name": "m"}},
        {"model_name": "m"},
    )
    plain = await assistants.update(made["assistant_id"], config={"tags": ["t"]})
    assert (plain["config"], plain["context"]) == (
        {"tags": ["t"], "configurable": {"model_name": "m"}},
        {"model_name": "m"},
    )
    old = await assistants.update(made["assistant_id"], config={"configurable": {"k": "v"}})
    assert (old["config"], old["context"]) == ({"configurable": {"k": "v"}}, {"k": "v"})
    both = {"graph_id": "agent", "config": {"configurable": {"k": "v"}}, "context": {"k": "v"}}
    text = "Cannot specify both configurable and context. Prefer setting context alone, which replaces it."
    assert await _refused(api, "POST", "/assistants", both) == (400, text)
    assert await _refused(api, "PATCH", f"/assistants/{made['assistant_id']}", both) == (400, text)


async def test_id_of_the_clients_own(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, GRAPHS) as api:
        own = fresh()
        made = await api.sdk.assistants.create("agent", assistant_id=own, name="first")
        assert made["assistant_id"] == own
        with pytest.raises(ConflictError):
            await api.sdk.assistants.create("other", assistant_id=own)
        body = {"graph_id": "agent", "assistant_id": own}
        assert await _refused(api, "POST", "/assistants", body) == (409, f"Assistant {own} already exists")
        again = await api.sdk.assistants.create("other", assistant_id=own, if_exists="do_nothing")
        assert again == made
        system = (await api.sdk.assistants.search(graph_id="agent", metadata={"created_by": "system"}))[0]
        await api.sdk.assistants.delete(system["assistant_id"])
        taken = {"graph_id": "other", "assistant_id": system["assistant_id"]}
        assert (await _refused(api, "POST", "/assistants", taken))[0] == 409


async def test_refusals(api: Serving) -> None:
    unknown = fresh()
    no_graph = "Graph 'nope' not found. Expected one of: ['agent', 'other']"
    not_an_id = "Invalid assistant ID: must be a UUID"
    own = (await api.sdk.assistants.create("agent"))["assistant_id"]
    refused: list[tuple[str, str, Any, int, str]] = [
        ("POST", "/assistants", {"graph_id": "nope"}, 404, no_graph),
        ("POST", "/assistants", {}, 422, "graph_id: Field required"),
        ("POST", "/assistants", {"graph_id": "agent", "assistant_id": "x"}, 422, not_an_id),
        ("PATCH", f"/assistants/{own}", {"graph_id": "nope"}, 404, no_graph),
        ("PATCH", f"/assistants/{unknown}", {}, 404, "Not Found"),
        ("PATCH", "/assistants/nope", {}, 422, not_an_id),
        ("DELETE", f"/assistants/{unknown}", None, 404, f"Assistant with ID {unknown} not found"),
        ("DELETE", "/assistants/nope", None, 422, not_an_id),
        ("POST", f"/assistants/{unknown}/versions", {}, 404, "Not Found"),
        ("POST", f"/assistants/{unknown}/latest", {"version": 1}, 404, "Not Found"),
        (
            "POST",
            f"/assistants/{own}/latest",
            {"version": 2},
            404,
            f"Assistant with ID {own} has no version 2",
        ),
        ("POST", f"/assistants/{own}/latest", {}, 422, "version: Field required"),
    ]
    for method, path, body, status, detail in refused:
        assert await _refused(api, method, path, body) == (status, detail)


async def test_a_graphs_own_assistant(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, GRAPHS) as api:
        system = await api.sdk.assistants.get("agent")
        changed = await api.sdk.assistants.update("agent", metadata={"team": "t"})
        assert (changed["version"], changed["metadata"]) == (2, {"created_by": "system", "team": "t"})
        status, detail = await _refused(api, "PATCH", "/assistants/agent", {"graph_id": "other"})
        assert (status, detail.split(";")[0]) == (
            409,
            f"Assistant {system['assistant_id']} stands for the graph 'agent'",
        )
        await api.sdk.assistants.delete(system["assistant_id"])
        assert [a["name"] for a in await api.sdk.assistants.search()] == ["other"]
        # Its graph is still there: who names it finds its assistant again.
        back = await api.sdk.assistants.get("agent")
        assert (back["assistant_id"], back["version"], back["metadata"]) == (
            system["assistant_id"],
            1,
            {"created_by": "system"},
        )
