"""A busy thread refuses a run that does not want to wait, on every route."""

from __future__ import annotations

import pytest

from tests.api.graphs import Held
from tests.api.serving import Serving

HELD = Held()
GRAPHS = {"graph": HELD.graph()}


@pytest.mark.parametrize("route", ["runs", "runs/stream", "runs/wait"])
async def test_reject(api: Serving, held: Held, route: str) -> None:
    thread = await api.thread()
    run = await api.run(thread, input={"trail": []})
    body = {"assistant_id": "graph", "input": {"n": 1}, "multitask_strategy": "reject"}
    answered = await api.http.post(f"/threads/{thread}/{route}", json=body)
    assert answered.status_code == 409
    assert answered.json() == {
        "detail": "Thread is already running a task. Wait for it to finish or choose a different "
        "multitask strategy."
    }
    assert (await api.http.get(f"/threads/{thread}")).json()["status"] == "busy"
    held.go.set()
    await api.stack.ended(run)
    assert (await api.wait(thread, input={"n": 1}, multitask_strategy="reject"))["n"] == 2
