"""Runs without a thread: where they are found again, and that their thread goes."""

from __future__ import annotations

from typing import Any

from api import temporary
from tests.api.graphs import asking, steps
from tests.api.serving import Serving, parse, serving

GRAPHS = {"graph": steps("plan")}

BODY: dict[str, Any] = {"assistant_id": "graph", "input": {"trail": ["x"]}}


async def test_stream_and_rejoin(api: Serving) -> None:
    answered = await api.http.post("/runs/stream", json={**BODY, "stream_mode": ["updates"]})
    events = parse(answered.content)
    place = f"/runs/{events[0].data['run_id']}"
    assert answered.headers["content-location"] == place
    assert answered.headers["location"] == f"{place}/stream"
    assert [e.name for e in events] == ["metadata", "updates"]
    again = await api.http.get(f"{place}/stream", headers={"Last-Event-ID": "1"})
    assert parse(again.content) == events[1:]
    assert (await api.http.get(f"/runs/{await api.thread()}/stream")).status_code == 404


async def test_wait_and_create(api: Serving) -> None:
    waited = await api.http.post("/runs/wait", json=BODY)
    assert waited.json() == {"trail": ["x", "plan"]}
    assert (await api.http.get(waited.headers["location"])).json() == waited.json()
    created = await api.http.post("/runs", json=BODY)
    run = created.json()
    assert created.headers["content-location"] == f"/runs/{run['run_id']}"
    assert (run["kwargs"]["temporary"], run["metadata"]["graph_id"]) == (True, "graph")
    await api.stack.ended(run["run_id"])
    assert await api.sdk.runs.wait(None, "graph", input={"trail": ["y"]}) == {"trail": ["y", "plan"]}


async def test_thread_goes(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"graph": asking()}) as api:
        gone, kept = [
            (await api.http.post("/runs/wait", json={**BODY, "on_completion": said})).headers["location"]
            for said in ("delete", "keep")
        ]
        listed = (await api.http.post("/threads/search", json={})).json()
        assert [t["thread_id"] for t in listed] == [kept.split("/")[2]]
        assert listed[0]["metadata"].keys() == {"graph_id", "assistant_id"}
        assert await temporary.delete_ended(api.stack.pool, older_than_seconds=30) == 0
        assert await temporary.delete_ended(api.stack.pool, older_than_seconds=0) == 1
        assert (await api.http.get(gone)).status_code == 404
        assert (await api.http.get(kept)).status_code == 200


async def test_same_key_is_the_same_run(api: Serving) -> None:
    key = {"Idempotency-Key": "k"}
    places = {
        (await api.http.post("/runs/wait", json=BODY, headers=key)).headers["location"] for _ in range(2)
    }
    assert len(places) == 1
    other = await api.http.post("/runs/wait", json={**BODY, "input": {}}, headers=key)
    assert other.status_code == 409
