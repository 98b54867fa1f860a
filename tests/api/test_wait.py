"""What waiting for a run answers: its own values, its error, or nothing when it was cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.api.graphs import Held, failing, steps
from tests.api.serving import Serving

HELD = Held()
GRAPHS = {"graph": steps("plan"), "failing": failing(), "held": HELD.graph()}


async def test_headers_and_values(api: Serving) -> None:
    thread = await api.thread()
    body = {"assistant_id": "graph", "input": {"trail": ["x"]}}
    answered = await api.http.post(f"/threads/{thread}/runs/wait", json=body)
    run = (await api.http.get(f"/threads/{thread}/runs")).json()[0]["run_id"]
    place = f"/threads/{thread}/runs/{run}"
    assert answered.headers["content-type"] == "application/json"
    assert answered.headers["location"] == f"{place}/join"
    assert answered.headers["content-location"] == place
    assert answered.json() == {"trail": ["x", "plan"]}
    joined = await api.http.get(f"{place}/join")
    assert joined.json() == answered.json()
    assert joined.headers["location"] == f"{place}/join"


async def test_no_states_are_kept_for_a_stream_that_nobody_asked_for(api: Serving) -> None:
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, []),
        ({"stream_mode": "updates"}, ["updates"]),
        ({"stream_mode": []}, ["values", "values"]),
    ]
    for asked, told in cases:
        thread = await api.thread()
        body = {"assistant_id": "graph", "input": {"trail": ["x"]}, **asked}
        assert (await api.http.post(f"/threads/{thread}/runs/wait", json=body)).json()["trail"] == [
            "x",
            "plan",
        ]
        (run,) = (await api.http.get(f"/threads/{thread}/runs")).json()
        events = await api.stack.events(run["run_id"])
        assert [name for name, _ in events] == ["metadata", *told]
        assert run["kwargs"]["stream_mode"] == (["updates"] if asked.get("stream_mode") else ["values"])


async def test_each_run_has_its_own_values(api: Serving) -> None:
    thread = await api.thread()
    runs = [await api.run(thread, input={"trail": [word]}) for word in ("x", "y")]
    await api.stack.ended(runs[1])
    joined = [(await api.http.get(f"/threads/{thread}/runs/{run}/join")).json() for run in runs]
    assert joined == [{"trail": ["x", "plan"]}, {"trail": ["x", "plan", "y", "plan"]}]


async def test_error(api: Serving) -> None:
    thread = await api.thread()
    error = {"error": "ValueError", "message": "boom in plan"}
    assert await api.wait(thread, "failing", input={"trail": []}) == {"__error__": error}
    run = (await api.http.get(f"/threads/{thread}/runs")).json()[0]
    assert run["status"] == "error"
    joined = await api.http.get(f"/threads/{thread}/runs/{run['run_id']}/join")
    assert joined.json() == {"__error__": error}
    shown = (await api.http.get(f"/threads/{thread}")).json()
    assert (shown["status"], shown["error"]) == ("error", error)
    state = (await api.http.get(f"/threads/{thread}/state")).json()
    assert state["next"] == ["plan"]
    assert state["tasks"][0]["error"] == "ValueError('boom in plan')"


async def test_error_ends_a_stream(api: Serving) -> None:
    events = await api.stream(await api.thread(), "failing", input={"trail": []}, stream_mode="updates")
    assert [e.name for e in events] == ["metadata", "error"]
    assert events[-1].data == {"error": "ValueError", "message": "boom in plan"}


async def test_cancelled(api: Serving, held: Held) -> None:
    thread = await api.thread()
    waiting = asyncio.create_task(api.wait(thread, "held", input={"trail": []}))
    await held.started.wait()
    run = (await api.http.get(f"/threads/{thread}/runs")).json()[0]["run_id"]
    await api.http.post(f"/threads/{thread}/runs/{run}/cancel")
    assert await waiting == {}


async def test_unknown_run(api: Serving) -> None:
    thread = await api.thread()
    answered = await api.http.get(f"/threads/{thread}/runs/{thread}/join")
    assert (answered.status_code, answered.json()) == (404, {"detail": "Run not found"})
