"""Searching threads: by metadata, status and ids; order, pages, chosen fields."""

from __future__ import annotations

from typing import Any

from tests.api.graphs import asking, steps
from tests.api.serving import Serving, fresh, serving


async def _ids(api: Serving, **body: Any) -> list[str]:
    answered = await api.http.post("/threads/search", json=body)
    assert answered.status_code == 200, answered.text
    return [thread["thread_id"] for thread in answered.json()]


async def test_filters_and_order(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"graph": asking()}) as api:
        a = await api.thread(metadata={"user": "u1", "tags": {"x": [1, 2]}})
        b = await api.thread(metadata={"user": "u1"})
        c = await api.thread(metadata={"user": "u2"})
        await api.wait(a, input={"trail": []})
        assert await _ids(api) == [a, c, b]
        assert await _ids(api, metadata={"user": "u1"}) == [a, b]
        assert await _ids(api, metadata={"tags": {"x": [2]}}) == [a]
        assert await _ids(api, metadata={"graph_id": "graph"}) == [a]
        assert await _ids(api, status="interrupted") == [a]
        assert await _ids(api, ids=[c, b, fresh()]) == [c, b]
        assert await _ids(api, ids=[]) == []
        assert await _ids(api, sort_by="created_at", sort_order="asc") == [a, b, c]
        assert await _ids(api, sort_by="created_at") == [c, b, a]
        assert await _ids(api, sort_by="status", sort_order="asc") == [*sorted([b, c]), a]
        assert await _ids(api, sort_by="thread_id", sort_order="asc") == sorted([a, b, c])
        assert await _ids(api, sort_by="state_updated_at") == [a, c, b]
        for body, number in (({}, 3), ({"metadata": {"user": "u1"}}, 2), ({"status": "busy"}, 0)):
            assert (await api.http.post("/threads/count", json=body)).json() == number


async def test_pages(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"graph": steps("plan")}) as api:
        ids = [await api.thread() for _ in range(3)]
        first = await api.http.post("/threads/search", json={"limit": 2})
        assert [t["thread_id"] for t in first.json()] == ids[:0:-1]
        assert (first.headers["x-pagination-total"], first.headers["x-pagination-next"]) == ("3", "2")
        last = await api.http.post("/threads/search", json={"limit": 2, "offset": 2})
        assert [t["thread_id"] for t in last.json()] == ids[:1]
        assert last.headers["x-pagination-total"] == "3"
        assert "x-pagination-next" not in last.headers


async def test_select_and_extract(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"graph": steps("plan")}) as api:
        thread = await api.thread()
        await api.wait(thread, input={"trail": ["x"]})
        paths = {
            "last": "values.trail[-1]",
            "user": "metadata.graph_id",
            "none": "values.trail[9]",
            "odd": "values[",
        }
        body = {"select": ["thread_id", "status"], "extract": paths}
        (found,) = (await api.http.post("/threads/search", json=body)).json()
        extracted = {"last": "plan", "user": "graph", "none": None, "odd": None}
        assert found == {"thread_id": thread, "status": "idle", "extracted": extracted}


async def test_refusals(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"graph": steps("plan")}) as api:
        refused: list[tuple[dict[str, Any], str]] = [
            ({"limit": 0}, "limit: "),
            ({"limit": 2000}, "limit: "),
            ({"offset": -1}, "offset: "),
            ({"status": "nope"}, "status: "),
            ({"sort_by": "nope"}, "sort_by: "),
            ({"ids": ["nope"]}, "must be a UUID"),
            ({"metadata": []}, "metadata: "),
        ]
        for body, says in refused:
            answered = await api.http.post("/threads/search", json=body)
            assert answered.status_code == 422 and says in answered.json()["detail"], answered.text


async def test_thread_whose_graph_is_gone(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"graph": steps("plan")}) as api:
        thread = await api.thread(metadata={"graph_id": "removed"})
        (found,) = (await api.http.post("/threads/search", json={})).json()
        assert (found["thread_id"], found["values"]) == (thread, None)
        assert (await api.http.get(f"/threads/{thread}/state")).status_code == 404
