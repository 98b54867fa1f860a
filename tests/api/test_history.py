"""A thread's history: order, limit, every shape of `before`, filters, and a subgraph's own."""

from __future__ import annotations

from typing import Any

from tests.api.graphs import nested, steps
from tests.api.serving import Serving, fresh

GRAPHS = {"graph": steps("plan", "finish"), "nested": nested()}


async def test_pages_and_filters(api: Serving) -> None:
    thread = await api.thread()
    url = f"/threads/{thread}/history"
    assert (await api.http.post(url, json={"limit": 10})).json() == []
    await api.wait(thread, input={"trail": ["x"]})
    everything = (await api.http.post(url, json={})).json()
    assert [s["metadata"]["step"] for s in everything] == [2, 1, 0, -1]
    assert [s["next"] for s in everything] == [[], ["finish"], ["plan"], ["__start__"]]
    assert (await api.http.get(url)).json() == everything
    assert (await api.http.get(url, params={"limit": 1})).json() == everything[:1]

    at = everything[1]["checkpoint_id"]
    shapes: list[Any] = [at, {"configurable": {"checkpoint_id": at}}, everything[1]["checkpoint"]]
    for before in shapes:
        found = await api.http.post(url, json={"before": before, "limit": 1})
        assert found.json() == everything[2:3]
    assert (await api.http.get(url, params={"before": at})).json() == everything[2:]
    assert (await api.http.post(url, json={"metadata": {"step": 1}})).json() == everything[1:2]
    root = {"checkpoint": {"thread_id": thread}, "limit": 2}
    assert (await api.http.post(url, json=root)).json() == everything[:2]
    exact = {"checkpoint": everything[1]["checkpoint"]}
    assert (await api.http.post(url, json=exact)).json() == everything[1:2]


async def test_refusals(api: Serving) -> None:
    thread = await api.thread()
    assert (await api.http.post(f"/threads/{thread}/history", json={"limit": 0})).status_code == 422
    assert (await api.http.get(f"/threads/{thread}/history?limit=0")).status_code == 422
    missing = await api.http.post(f"/threads/{fresh()}/history", json={})
    assert missing.status_code == 404


async def test_subgraph(api: Serving) -> None:
    thread = await api.thread()
    await api.wait(thread, "nested", input={"trail": []})
    task = (await api.http.get(f"/threads/{thread}/state")).json()["tasks"][0]
    body = {"checkpoint": {"checkpoint_ns": f"child:{task['id']}"}}
    found = (await api.http.post(f"/threads/{thread}/history", json=body)).json()
    assert [s["next"] for s in found] == [["sub_ask"], ["__start__"]]
    for odd in ("nope", "nope:1|other:2", "child:1\x00sub:2"):
        answered = await api.http.post(
            f"/threads/{thread}/history", json={"checkpoint": {"checkpoint_ns": odd}}
        )
        assert answered.status_code in (200, 422), answered.text
