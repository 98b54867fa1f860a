"""Several runs in one request: cancelled by id or by status, started as a batch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.graphs import Held, steps
from tests.api.serving import Serving, fresh, in_front_of

HELD = Held()
GRAPHS = {"graph": HELD.graph(), "plan": steps("plan")}


async def _running_and_waiting(api: Serving, held: Held) -> tuple[str, str, str]:
    held.reset()
    thread = await api.thread()
    first = await api.run(thread, input={"trail": ["first"]})
    await held.started.wait()
    return thread, first, await api.run(thread, input={"trail": ["second"]})


async def test_by_ids(api: Serving, held: Held) -> None:
    thread, first, second = await _running_and_waiting(api, held)
    third = await api.run(thread, input={"trail": ["third"]})
    await api.sdk.runs.cancel_many(thread_id=thread, run_ids=[first, third])
    assert (await api.stack.ended(first))["status"] == "interrupted"
    assert await api.status(thread, third) == "interrupted"
    held.go.set()
    assert (await api.stack.ended(second))["status"] == "success"


@pytest.mark.parametrize(
    ("status", "left"), [("pending", ["running", "interrupted"]), ("all", ["interrupted", "interrupted"])]
)
async def test_by_status(api: Serving, held: Held, status: str, left: list[str]) -> None:
    thread, first, second = await _running_and_waiting(api, held)
    answered = await api.http.post("/runs/cancel", json={"status": status})
    assert (answered.status_code, answered.content) == (204, b"")
    if status == "all":
        await api.stack.ended(first)
    assert [await api.status(thread, run) for run in (first, second)] == left
    await api.sdk.runs.cancel_many(status="all") if status != "all" else None
    await api.stack.ended(first)


async def test_taken_back(api: Serving, held: Held) -> None:
    thread, first, second = await _running_and_waiting(api, held)
    await api.sdk.runs.cancel_many(thread_id=thread, run_ids=[first, second], action="rollback")
    joined = await api.http.get(f"/threads/{thread}/runs/{first}/join")
    assert joined.status_code in (200, 404)
    assert (await api.http.get(f"/threads/{thread}/runs")).json() == []
    assert (await api.http.get(f"/threads/{thread}/state")).json()["values"] == {}


async def test_nothing_to_cancel(api: Serving) -> None:
    thread = await api.thread()
    await api.wait(thread, "plan", input={"trail": ["x"]})
    run = (await api.http.get(f"/threads/{thread}/runs")).json()[0]["run_id"]
    for body in (
        {"thread_id": thread, "run_ids": [run]},
        {"thread_id": fresh(), "run_ids": [fresh()]},
        {"status": "running"},
    ):
        answered = await api.http.post("/runs/cancel", json=body)
        assert (answered.status_code, answered.json()) == (404, {"detail": "No runs found to cancel."})


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"run_ids": [fresh()]},
        {"thread_id": fresh()},
        {"thread_id": fresh(), "run_ids": []},
        {"thread_id": "x", "run_ids": [fresh()]},
        {"status": "success"},
        {"status": "all", "thread_id": fresh(), "run_ids": [fresh()]},
    ],
)
async def test_unclear(api: Serving, body: object) -> None:
    answered = await api.http.post("/runs/cancel", json=body)
    assert answered.status_code == 422 and isinstance(answered.json()["detail"], str)


async def test_only_ones_own(api: Serving, held: Held) -> None:
    """`all` is all of those that belong to who asks."""
    held.reset()
    async with in_front_of(api.stack, api_keys="alice:a,mallory:m") as keyed:
        body = {"assistant_id": "graph", "input": {"trail": ["x"]}}
        run = (await keyed.http.post("/runs", json=body, headers={"x-api-key": "a"})).json()
        await held.started.wait()
        for sent in ({"status": "all"}, {"thread_id": run["thread_id"], "run_ids": [run["run_id"]]}):
            answered = await keyed.http.post("/runs/cancel", json=sent, headers={"x-api-key": "m"})
            assert answered.status_code == 404
        assert await api.status(run["thread_id"], run["run_id"]) == "running"
        answered = await keyed.http.post("/runs/cancel", json={"status": "all"}, headers={"x-api-key": "a"})
        assert answered.status_code == 204
        assert (await api.stack.ended(run["run_id"]))["status"] == "interrupted"


async def test_batch(api: Serving) -> None:
    one: Any = {"assistant_id": "plan", "input": {"trail": ["x"]}, "on_completion": "keep"}
    other: Any = {**one, "input": {"trail": ["y"]}}
    runs = await api.sdk.runs.create_batch([one, other])
    for run, said in zip(runs, "xy", strict=True):
        joined = await api.http.get(f"/threads/{run['thread_id']}/runs/{run['run_id']}/join")
        assert joined.json()["trail"] == [said, "plan"]


async def test_batch_is_all_or_nothing(api: Serving) -> None:
    before = await _recorded(api)
    good = {"assistant_id": "plan", "input": {"trail": ["x"]}}
    for bad in (
        {"assistant_id": "nope"},
        {"assistant_id": fresh()},
        {**good, "webhook": "http://localhost"},
        7,
    ):
        answered = await api.http.post("/runs/batch", json=[good, bad])
        assert answered.status_code in (404, 422) and isinstance(answered.json()["detail"], str)
    nothings: tuple[Any, ...] = ([], {}, good, None)
    for nothing in nothings:
        assert (await api.http.post("/runs/batch", json=nothing)).status_code == 422
    assert await _recorded(api) == before


async def _recorded(api: Serving) -> int:
    async with api.stack.pool.connection() as conn:
        row = await (await conn.execute("SELECT count(*) AS runs FROM turns.turn")).fetchone()
    return int((row or {})["runs"])
