"""How far a thread is: what runs and in which attempt, what is done, what waits; asked for or streamed."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy

from tests.api.graphs import Held, State, steps
from tests.api.serving import Event, Serving, fresh, parse, serving

HELD = Held()
GRAPHS = {"graph": steps("a"), "held": HELD.graph()}


async def _progress(api: Serving, thread: str) -> dict[str, Any]:
    answered = await api.http.get(f"/threads/{thread}/progress")
    assert answered.status_code == 200, answered.text
    return answered.json()


async def test_idle_and_unknown(api: Serving) -> None:
    thread = await api.thread()
    idle: dict[str, Any] = {
        "thread_id": thread,
        "status": "idle",
        "run_id": None,
        "running": [],
        "done": [],
        "interrupted": 0,
        "queue": [],
    }
    assert await _progress(api, thread) == idle
    await api.wait(thread, input={"trail": []})
    assert await _progress(api, thread) == idle
    for path in ("progress", "progress/stream"):
        assert (await api.http.get(f"/threads/{fresh()}/{path}")).status_code == 404


async def test_running_and_waiting(api: Serving, held: Held) -> None:
    thread = await api.thread()
    first = await api.run(thread, "held", input={"trail": []})
    await held.started.wait()
    second = await api.run(thread, "held", input={"trail": []})
    now = await _progress(api, thread)
    assert (now["status"], now["run_id"], now["queue"]) == ("busy", first, [second])
    assert now["running"] == [{"node": "hold", "label": "hold", "attempt": 1, "last_error": None}]
    held.go.set()
    await api.stack.ended(second)


async def test_attempts(database_url: str, temporal: str) -> None:
    calls: list[int] = []

    async def flaky(state: State) -> Any:
        calls.append(1)
        raise ConnectionError("not yet")

    builder = StateGraph(State)
    policy = RetryPolicy(initial_interval=0.05, backoff_factor=1, max_attempts=1000, jitter=False)
    builder.add_node("flaky", flaky, retry_policy=policy)
    builder.add_edge(START, "flaky")
    async with serving(database_url, temporal, {"graph": builder.compile()}) as api:
        thread = await api.thread()
        run = await api.run(thread, input={"trail": []})
        while len(calls) < 3:
            await asyncio.sleep(0.02)
        (running,) = (await _progress(api, thread))["running"]
        assert (running["node"], running["last_error"]) == ("flaky", "ConnectionError")
        assert running["attempt"] >= 3
        await api.sdk.runs.cancel(thread, run, wait=True)


async def test_stream_shows_changes(api: Serving, held: Held) -> None:
    thread = await api.thread()
    seen: list[Event] = []

    async def watch() -> None:
        raw = b""
        async with api.http.stream("GET", f"/threads/{thread}/progress/stream") as answered:
            assert answered.headers["content-type"].startswith("text/event-stream")
            async for chunk in answered.aiter_raw():
                raw += chunk
                seen[:] = parse(raw[: raw.rfind(b"\r\n\r\n") + 4])

    watching = asyncio.create_task(watch())
    await _until(lambda: bool(seen))
    run = await api.run(thread, "held", input={"trail": []})
    await _until(lambda: seen[-1].data["run_id"] == run and bool(seen[-1].data["running"]))
    held.go.set()
    await _until(lambda: seen[-1].data["status"] == "idle")
    assert {event.name for event in seen} == {"progress"}
    assert all(a != b for a, b in itertools.pairwise(seen))
    await api.http.delete(f"/threads/{thread}")
    await asyncio.wait_for(watching, 5)


async def _until(true: Any) -> None:
    async with asyncio.timeout(10):
        while not true():
            await asyncio.sleep(0.02)
