"""Cancelling: at once or when it has stopped; waiting runs, finished runs, unknown runs."""

from __future__ import annotations

import asyncio
import time

from tests.api.graphs import Held, steps
from tests.api.serving import Serving, fresh, serving

HELD = Held()
GRAPHS = {"graph": HELD.graph(), "plan": steps("plan")}


async def test_without_waiting(api: Serving, held: Held) -> None:
    thread = await api.thread()
    stream = asyncio.create_task(api.stream(thread, input={"trail": ["x"]}, stream_mode="values"))
    await held.started.wait()
    run = (await api.http.get(f"/threads/{thread}/runs")).json()[0]["run_id"]
    answered = await api.http.post(
        f"/threads/{thread}/runs/{run}/cancel", params={"wait": "0", "action": "interrupt"}
    )
    assert (answered.status_code, answered.content) == (202, b"")
    assert [e.name for e in await stream] == ["metadata", "values"]
    assert await api.status(thread, run) == "interrupted"
    shown = (await api.http.get(f"/threads/{thread}")).json()
    assert (shown["status"], shown["values"]) == ("interrupted", {"trail": ["x"]})


async def test_waiting_waits(database_url: str, temporal: str) -> None:
    """FR-19: with wait=1 the answer comes when the turn has stopped, and not before."""
    held = Held(slow_to_stop=0.7)
    async with serving(database_url, temporal, {"graph": held.graph()}, sse_heartbeat=0.2) as api:
        thread = await api.thread()
        run = await api.run(thread, input={"trail": []})
        await held.started.wait()
        began = time.monotonic()
        answered = await api.http.post(f"/threads/{thread}/runs/{run}/cancel", params={"wait": "1"})
        assert time.monotonic() - began > 0.7 and held.stopped.is_set()
        assert await api.status(thread, run) == "interrupted"
        assert (answered.status_code, answered.json()) == (200, {})
        assert answered.headers["location"] == f"/threads/{thread}/runs/{run}/join"
        assert answered.headers["content-location"] == f"/threads/{thread}/runs/{run}"


async def test_run_that_waits(api: Serving, held: Held) -> None:
    thread = await api.thread()
    first = await api.run(thread, input={"trail": ["first"]})
    await held.started.wait()
    second = await api.run(thread, input={"trail": ["second"]})
    await api.sdk.runs.cancel(thread, second, wait=True)
    assert [await api.status(thread, run) for run in (first, second)] == ["running", "interrupted"]
    held.go.set()
    await api.stack.ended(first)
    third = await api.wait(thread, input={"trail": ["third"]})
    assert third["trail"] == ["first", "hold", "after", "third", "hold", "after"]


async def test_nothing_to_cancel(api: Serving) -> None:
    thread = await api.thread()
    await api.wait(thread, "plan", input={"trail": []})
    run = (await api.http.get(f"/threads/{thread}/runs")).json()[0]["run_id"]
    for wait in ("0", "1"):
        over = await api.http.post(f"/threads/{thread}/runs/{run}/cancel", params={"wait": wait})
        assert over.status_code == 404
        assert over.json()["detail"].startswith("No matching runs to cancel.")
    unknown = await api.http.post(f"/threads/{thread}/runs/{fresh()}/cancel")
    assert (unknown.status_code, unknown.json()) == (404, {"detail": "No runs found to cancel."})


async def test_actions(api: Serving, held: Held) -> None:
    thread = await api.thread()
    run = await api.run(thread, input={"trail": []})
    answered = await api.http.post(f"/threads/{thread}/runs/{run}/cancel", params={"action": "zzz"})
    assert answered.status_code == 422 and "action: " in answered.json()["detail"]
    held.go.set()
    await api.stack.ended(run)
