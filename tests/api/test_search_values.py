"""Searching and counting threads by what their latest state contains."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from api import thread_search
from tests.api.graphs import chatting, steps
from tests.api.serving import Serving, serving


class State(TypedDict, total=False):
    topic: str
    n: float
    flag: bool
    nothing: str | None
    order: dict[str, Any]
    tags: list[Any]


def _keeping() -> Any:
    async def keep(state: State) -> Any:
        return {"nothing": state.get("nothing")}

    builder = StateGraph(State)
    builder.add_node("keep", keep)
    builder.add_edge(START, "keep")
    return builder.compile()


async def _ids(api: Serving, values: dict[str, Any], **body: Any) -> list[str]:
    answered = await api.http.post("/threads/search", json={"values": values, **body})
    assert answered.status_code == 200, answered.text
    if not set(body) & {"limit", "offset", "ids"}:
        counted = await api.http.post("/threads/count", json={"values": values, **body})
        assert counted.json() == len(answered.json())
    return [thread["thread_id"] for thread in answered.json()]


async def test_what_contains_what(database_url: str, temporal: str) -> None:
    graphs = {"graph": _keeping(), "other": steps("plan"), "chat": chatting()}
    async with serving(database_url, temporal, graphs) as api:
        a, b, c, d, _ = [await api.thread() for _ in range(5)]
        order = {"id": 7, "lines": [{"sku": "x", "count": 2}, {"sku": "y", "count": 1}]}
        await api.wait(a, input={"topic": "cats", "n": 1, "flag": True, "order": order, "tags": ["a", "b"]})
        await api.wait(b, input={"topic": "dogs", "n": 1.0, "flag": False, "tags": ["b", ["c"]]})
        await api.wait(c, "other", input={"trail": ["cats"]})
        await api.wait(d, "chat", input={"messages": [{"role": "user", "content": "cats?", "id": "m1"}]})
        asked: list[tuple[dict[str, Any], list[str]]] = [
            ({"topic": "cats"}, [a]),
            ({"topic": "cat"}, []),
            ({"n": 1}, [b, a]),
            ({"n": True}, []),
            ({"flag": True}, [a]),
            ({"flag": 1}, []),
            ({"nothing": None}, [b, a]),
            ({"topic": None}, []),
            ({"unknown": None}, []),
            ({"order": {"id": 7}}, [a]),
            ({"order": {"lines": [{"sku": "y"}]}}, [a]),
            ({"order": {"lines": [{"sku": "y", "count": 2}]}}, []),
            ({"tags": ["b"]}, [b, a]),
            ({"tags": []}, [b, a]),
            ({"tags": "b"}, []),
            ({"tags": [["c"]]}, [b]),
            ({"topic": "cats", "flag": False}, []),
            ({"trail": ["plan"]}, [c]),
            ({"messages": [{"content": "Hello there friend", "type": "ai"}]}, [d]),
            ({"messages": [{"id": "m1"}]}, [d]),
            ({"topic": {}}, []),
        ]
        for values, expected in asked:
            assert await _ids(api, values) == expected, values
        assert await _ids(api, {"n": 1}, metadata={"graph_id": "other"}) == []
        assert await _ids(api, {"n": 1}, status="busy") == []
        assert await _ids(api, {"n": 1}, ids=[a]) == [a]
        # The latest state, not an earlier one.
        await api.sdk.threads.update_state(a, {"topic": "birds"})
        assert await _ids(api, {"topic": "cats"}) == []
        assert await _ids(api, {"topic": "birds"}) == [a]
        assert [t["thread_id"] for t in await api.sdk.threads.search(values={"topic": "dogs"})] == [b]
        assert await api.sdk.threads.count(values={"topic": "dogs"}) == 1


async def test_pages(database_url: str, temporal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_search, "_BATCH", 2)
    async with serving(database_url, temporal, {"graph": _keeping()}) as api:
        threads = [await api.thread() for _ in range(5)]
        for number, thread in enumerate(threads):
            await api.wait(thread, input={"tags": ["odd" if number % 2 else "even"]})
        even = threads[0::2]
        sort = {"sort_by": "created_at", "sort_order": "asc"}
        body = {"values": {"tags": ["even"]}, "limit": 2, **sort}
        first = await api.http.post("/threads/search", json=body)
        assert [t["thread_id"] for t in first.json()] == even[:2]
        assert (first.headers["x-pagination-total"], first.headers["x-pagination-next"]) == ("3", "2")
        last = await api.http.post("/threads/search", json={**body, "offset": 2})
        assert [t["thread_id"] for t in last.json()] == even[2:]
        assert "x-pagination-next" not in last.headers


async def test_more_than_can_be_read(
    database_url: str, temporal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_search, "EXAMINED", 3)
    async with serving(database_url, temporal, {"graph": _keeping()}) as api:
        for topic in ("a", "a", "b", "a"):
            await api.wait(await api.thread(metadata={"topic": topic}), input={"topic": topic, "tags": ["x"]})
        for path in ("search", "count"):
            refused = await api.http.post(f"/threads/{path}", json={"values": {"tags": ["y"]}})
            detail = "values: more than 3 threads would have to be read; narrow the search by metadata, status or ids"
            assert (refused.status_code, refused.json()) == (422, {"detail": detail})
        # What was found before the limit is told; what PostgreSQL leaves out does not count.
        assert len(await _ids(api, {"tags": ["x"]}, limit=2)) == 2
        assert len(await _ids(api, {"topic": "a"})) == 3
        assert len(await _ids(api, {"tags": ["x"]}, metadata={"topic": "a"})) == 3
