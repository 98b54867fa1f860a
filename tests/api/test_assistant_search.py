"""Searching and counting assistants: filters, order, pages, chosen fields."""

from __future__ import annotations

from typing import Any

from tests.api.graphs import steps
from tests.api.serving import Serving, serving


async def _names(api: Serving, **body: Any) -> list[str]:
    answered = await api.http.post("/assistants/search", json=body)
    assert answered.status_code == 200, answered.text
    return [assistant["name"] for assistant in answered.json()]


async def test_filters_order_and_pages(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"agent": steps("plan"), "chat": steps("talk")}) as api:
        own = await api.sdk.assistants.create("agent", name="Zoe_1", metadata={"team": {"a": [1, 2]}, "x": 1})
        await api.sdk.assistants.create("chat", name="ben", metadata={"x": 1})
        assert await _names(api) == ["ben", "Zoe_1", "chat", "agent"]
        assert await _names(api, sort_order="asc") == ["agent", "chat", "Zoe_1", "ben"]
        await api.sdk.assistants.update(own["assistant_id"], description="d")
        assert await _names(api, sort_by="updated_at") == ["Zoe_1", "ben", "chat", "agent"]
        assert await _names(api, sort_by="name", sort_order="asc") == ["Zoe_1", "agent", "ben", "chat"]
        assert set(await _names(api, graph_id="chat")) == {"ben", "chat"}
        ids = await api.sdk.assistants.search(sort_by="assistant_id", sort_order="asc")
        assert [a["assistant_id"] for a in ids] == sorted(a["assistant_id"] for a in ids)
        assert await _names(api, name="zOE") == ["Zoe_1"]
        assert await _names(api, name="%") == [] and await _names(api, name="e_") == ["Zoe_1"]
        assert await _names(api, metadata={"x": 1}) == ["ben", "Zoe_1"]
        assert await _names(api, metadata={"team": {"a": [2]}}) == ["Zoe_1"]
        page = await api.sdk.assistants.search(limit=3, response_format="object")
        assert (len(page["assistants"]), page["next"]) == (3, "3")
        last = await api.http.post("/assistants/search", json={"limit": 3, "offset": 3})
        assert last.headers["x-pagination-total"] == "4" and "x-pagination-next" not in last.headers
        some = await api.sdk.assistants.search(graph_id="agent", name="zoe", select=["name", "version"])
        assert some == [{"name": "Zoe_1", "version": 2}]
        counts: list[tuple[dict[str, Any], int]] = [
            ({}, 4),
            ({"graph_id": "agent"}, 2),
            ({"name": "be"}, 1),
            ({"metadata": {"x": 1}}, 2),
        ]
        for body, number in counts:
            assert await api.sdk.assistants.count(**body) == number


async def test_refusals(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"agent": steps("plan")}) as api:
        refused: list[tuple[dict[str, Any], int, str]] = [
            ({"graph_id": "nope"}, 404, "Graph 'nope' not found. Expected one of: ['agent']"),
            ({"limit": 0}, 422, "limit: "),
            ({"limit": 1001}, 422, "limit: "),
            ({"sort_by": "version"}, 422, "sort_by: "),
        ]
        for body, status, says in refused:
            answered = await api.http.post("/assistants/search", json=body)
            assert answered.status_code == status and says in answered.json()["detail"], answered.text
        nothing = await api.http.post("/assistants/search")
        assert (nothing.status_code, nothing.json()) == (422, {"detail": "Invalid JSON in request body"})
