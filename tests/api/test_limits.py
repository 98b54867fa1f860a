"""Limits answer with a status and one line that say what to do, keep nothing of what they refuse, and pass."""

from __future__ import annotations

import asyncio

import pytest

from tests.api.graphs import Held, Ticking
from tests.api.serving import Serving, first_events, parse, serving

HELD = Held()
GRAPHS = {"graph": HELD.graph()}
SETTINGS = {"queued_turns": 2, "request_bytes": 2000}


@pytest.mark.parametrize("route", ["runs", "runs/stream", "runs/wait"])
async def test_a_full_queue(api: Serving, held: Held, route: str) -> None:
    thread = await api.thread()
    runs = [await api.run(thread, input={"n": n}) for n in range(3)]
    body = {"assistant_id": "graph", "input": {"n": 9}}
    refused = await api.http.post(f"/threads/{thread}/{route}", json=body)
    listed = (await api.http.get(f"/threads/{thread}/runs")).json()

    assert refused.status_code == 429
    assert refused.json()["detail"].startswith(f"Thread {thread} has 2 turns waiting, as many as it may.")
    assert [run["run_id"] for run in reversed(listed)] == runs

    held.go.set()
    for run in runs:
        await api.stack.ended(run)
    assert (await api.http.get(f"/threads/{thread}")).json()["status"] == "idle"
    assert (await api.wait(thread, input={"n": 9}))["n"] == 4


async def test_cutting_in_on_a_full_queue(api: Serving, held: Held) -> None:
    thread = await api.thread()
    runs = [await api.run(thread, input={"n": n}) for n in range(3)]
    await held.started.wait()
    held.go.set()
    last = await api.run(thread, input={"n": 9}, multitask_strategy="interrupt")
    rows = [await api.stack.ended(run) for run in (*runs, last)]

    assert rows[-1]["status"] == "success"


async def test_a_body_that_is_too_large(api: Serving) -> None:
    thread = await api.thread()
    before = (await api.http.get(f"/threads/{thread}")).json()
    body = {"assistant_id": "graph", "input": {"trail": ["x" * 2000]}, "metadata": {"a": 1}}
    for route in (f"/threads/{thread}/runs", f"/threads/{thread}/runs/stream", "/runs", "/threads"):
        refused = await api.http.post(route, json=body)
        assert refused.status_code == 413
        assert refused.json() == {"detail": "The request body is larger than 2000 bytes"}

    assert (await api.http.get(f"/threads/{thread}/runs")).json() == []
    assert (await api.http.get(f"/threads/{thread}")).json() == before
    assert (await api.http.post("/threads/count", json={"metadata": {"a": 1}})).json() == 0


@pytest.mark.slow
async def test_every_connection_in_use(database_url: str, temporal: str) -> None:
    """A request is refused within `pool_wait`; a stream under way waits for a connection and misses nothing."""
    ticking = Ticking()
    async with serving(database_url, temporal, {"graph": ticking.graph()}, pool_size=2, pool_wait=0.5) as api:
        thread = await api.thread()
        body = {"assistant_id": "graph", "input": {"trail": ["x"]}, "stream_mode": ["custom"]}
        ticking.ticks.put_nowait(0)
        async with api.http.stream("POST", f"/threads/{thread}/runs/stream", json=body) as streamed:
            lines = streamed.aiter_raw()
            seen = await first_events(lines, 2)
            pool = api.app.state.parts.pool
            async with pool.connection(), pool.connection():
                for route in ("/threads", f"/threads/{thread}/runs", f"/threads/{thread}/runs/stream"):
                    refused = await api.http.post(route, json=body)
                    assert refused.status_code == 503
                    assert refused.json() == {
                        "detail": "No database connection came free in time. Try again."
                    }
                for tick in (1, None):
                    ticking.ticks.put_nowait(tick)
                errors = pool.get_stats()["requests_errors"]
                while pool.get_stats()["requests_errors"] == errors:  # the stream asked in vain
                    await asyncio.sleep(0.01)
            seen += parse(b"".join([chunk async for chunk in lines]))

        assert [event.data["tick"] for event in seen if event.name == "custom"] == [0, 1]
        assert len((await api.http.get(f"/threads/{thread}/runs")).json()) == 1
        assert (await api.http.post("/threads/count", json={})).json() == 1
