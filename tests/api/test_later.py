"""`after_seconds`: a run begins when it is due, behind what its thread accepted meanwhile."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.api.graphs import Held, steps
from tests.api.serving import Serving
from workflows import names

HELD = Held()
GRAPHS = {"graph": steps("plan"), "held": HELD.graph()}
LONG = 3600


async def _created(api: Serving, thread: str, **body: Any) -> Any:
    answered = await api.http.post(f"/threads/{thread}/runs", json={"assistant_id": "graph", **body})
    assert answered.status_code == 200, answered.text
    return answered.json()


async def _sweep(api: Serving) -> None:
    await api.stack.client.execute_workflow(
        names.SWEEP_WORKFLOW, id=f"sweep-{api.url}", task_queue=api.stack.settings.task_queue
    )


async def test_begins_when_it_is_due(api: Serving) -> None:
    thread = await api.thread()
    run = await _created(api, thread, input={"trail": ["later"]}, after_seconds=0.7)
    assert run["status"] == "pending"
    assert (await api.http.get(f"/threads/{thread}/runs/{run['run_id']}/join")).json()["trail"] == [
        "later",
        "plan",
    ]
    due = datetime.fromisoformat(run["created_at"])
    ended: Any = await api.sdk.runs.get(thread, run["run_id"])
    assert ended["status"] == "success" and datetime.fromisoformat(ended["updated_at"]) > due
    asked = await api.stack.client.get_workflow_handle(f"delayed/{run['run_id']}").describe()
    assert asked.execution_time is not None and (due - asked.execution_time).total_seconds() < 0.2


async def test_streamed(api: Serving) -> None:
    shown = await api.stream(await api.thread(), input={"trail": ["x"]}, after_seconds=0.5)
    assert [event.name for event in shown] == ["metadata", "values", "values"]


async def test_others_go_first(api: Serving) -> None:
    """What was accepted later, and even begun later, than a run that is not due does not wait for it."""
    thread = await api.thread()
    later = await _created(api, thread, input={"trail": ["later"]}, after_seconds=LONG)
    assert (await api.wait(thread, input={"trail": ["now"]}))["trail"] == ["now", "plan"]
    assert await api.status(thread, later["run_id"]) == "pending"
    due = datetime.fromisoformat(later["created_at"])
    assert (due - datetime.now(UTC)).total_seconds() > LONG - 60

    await _make_due(api, later["run_id"])
    await _sweep(api)
    ended = (await api.http.get(f"/threads/{thread}/runs/{later['run_id']}/join")).json()
    assert ended["trail"] == ["now", "plan", "later", "plan"]
    assert (await api.http.get(f"/threads/{thread}")).json()["status"] == "idle"


async def test_the_sweep_leaves_what_is_not_due(api: Serving) -> None:
    thread = await api.thread()
    run = await _created(api, thread, input={"trail": ["x"]}, after_seconds=LONG)
    await _sweep(api)
    assert await api.status(thread, run["run_id"]) == "pending"
    await api.sdk.runs.cancel(thread, run["run_id"], wait=True)
    assert await api.status(thread, run["run_id"]) == "interrupted"
    await _make_due(api, run["run_id"])
    await _sweep(api)
    assert await api.status(thread, run["run_id"]) == "interrupted"


async def test_cuts_in_when_it_is_due(api: Serving, held: Held) -> None:
    thread = await api.thread()
    running = await api.run(thread, "held", input={"trail": ["x"]})
    await held.started.wait()
    later = await _created(
        api, thread, input={"trail": ["later"]}, after_seconds=0.5, multitask_strategy="interrupt"
    )
    joined = await api.http.get(f"/threads/{thread}/runs/{later['run_id']}/join")
    assert joined.json()["trail"] == ["x", "later", "plan"]
    assert await api.status(thread, running) == "interrupted"


async def test_the_same_request_again(api: Serving) -> None:
    thread = await api.thread()
    body = {"assistant_id": "graph", "input": {"trail": ["x"]}, "after_seconds": 0.5}
    key = {"Idempotency-Key": "k"}
    runs = [(await api.http.post(f"/threads/{thread}/runs", json=body, headers=key)).json() for _ in range(3)]
    assert len({run["run_id"] for run in runs}) == 1
    joined = await api.http.get(f"/threads/{thread}/runs/{runs[0]['run_id']}/join")
    assert joined.json()["trail"] == ["x", "plan"]
    other = await api.http.post(f"/threads/{thread}/runs", json={**body, "after_seconds": 1}, headers=key)
    assert other.status_code == 409


async def _make_due(api: Serving, run: str) -> None:
    """As if the time had come and Temporal had forgotten about it."""
    await api.stack.client.get_workflow_handle(f"delayed/{run}").terminate()
    past = "now() - interval '1 hour'"
    async with api.stack.pool.connection() as conn:
        statement: Any = f"UPDATE turns.turn SET created_at = {past}, due_at = {past} WHERE turn_id = %s"
        await conn.execute(statement, (run,))
