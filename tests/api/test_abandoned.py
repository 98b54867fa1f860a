"""Abandoned work: threads whose last turn failed or was cancelled, with the effects it had done; nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from adapter.effects import effect
from adapter.store import requests
from tests.api.graphs import Held, State
from tests.api.serving import Serving, serving
from tests.rows import record
from tests.servers import Postgres


async def _charge(*, idempotency_key: str) -> str:
    return "charged"


def _acting(held: Held) -> Any:
    """Charges, then does what it is told: fail, ask (and then fail, if told so), wait, or nothing."""

    async def pay(state: State) -> Any:
        return {"trail": [await effect("charge", _charge)]}

    async def act(state: State) -> Any:
        told = state.get("answer")
        if told == "ask":
            told = interrupt("what now?")
        if told == "hold":
            held.started.set()
            await held.go.wait()
        if told == "fail":
            raise ValueError("boom in act")
        return {"trail": ["act"]}

    builder = StateGraph(State)
    builder.add_node("pay", pay).add_node("act", act)
    builder.add_edge(START, "pay").add_edge("pay", "act")
    return builder.compile()


@pytest.fixture(scope="module")
def held() -> Held:
    return Held()


@pytest_asyncio.fixture(scope="module")
async def api(postgres: Postgres, temporal: str, held: Held) -> AsyncIterator[Serving]:
    async with serving(postgres.clone(), temporal, {"graph": _acting(held)}) as it:
        yield it


async def _listed(api: Serving, thread: str) -> Any:
    """Returns what the list says about a thread."""
    found = (await api.http.get("/threads/abandoned", params={"limit": 1000})).json()
    return [one for one in found if one["thread_id"] == thread]


async def _run(api: Serving, thread: str, told: str, **more: Any) -> str:
    run = await api.run(thread, input={"trail": [], "answer": told}, **more)
    await api.stack.ended(run)
    return run


async def test_a_failed_turn(api: Serving) -> None:
    thread = await api.thread()
    run = await _run(api, thread, "fail")
    (effect,) = (await api.http.get(f"/threads/{thread}/effects")).json()
    ended = (await api.http.get(f"/threads/{thread}/runs/{run}")).json()["updated_at"]

    assert await _listed(api, thread) == [
        {
            "thread_id": thread,
            "run_id": run,
            "status": "error",
            "error": "ValueError",
            "ended_at": ended,
            "effects": [
                {"run_id": run, "name": "charge", "node": "pay", "key": effect["key"]}
                | {"state": "finished", "attempts": 1}
            ],
        }
    ]


async def test_a_cancelled_turn(api: Serving, held: Held) -> None:
    thread = await api.thread()
    held.started.clear()
    run = await api.run(thread, input={"trail": [], "answer": "hold"})
    await held.started.wait()
    assert await _listed(api, thread) == []  # it runs
    await api.http.post(f"/threads/{thread}/runs/{run}/cancel", params={"wait": 1})

    (listed,) = await _listed(api, thread)
    assert (listed["status"], listed["error"]) == ("interrupted", "UserInterrupt")
    assert [effect["name"] for effect in listed["effects"]] == ["charge"]


async def test_a_resume_that_failed_left_what_the_turn_before_had_done(api: Serving) -> None:
    thread = await api.thread()
    asked = await _run(api, thread, "ask")
    assert await _listed(api, thread) == []  # it waits for a person
    resumed = await api.run(thread, command={"resume": "fail"})
    await api.stack.ended(resumed)

    (listed,) = await _listed(api, thread)
    assert listed["run_id"] == resumed
    assert [(effect["run_id"], effect["name"]) for effect in listed["effects"]] == [(asked, "charge")]


async def test_a_static_breakpoint_is_not_abandoned(api: Serving) -> None:
    thread = await api.thread()
    await _run(api, thread, "", interrupt_before=["act"])

    assert (await api.http.get(f"/threads/{thread}")).json()["status"] == "interrupted"
    assert await _listed(api, thread) == []


async def test_going_on_ends_it(api: Serving) -> None:
    thread = await api.thread()
    await _run(api, thread, "fail")
    await _run(api, thread, "")

    assert await _listed(api, thread) == []


async def test_an_edit_that_leaves_nothing_to_run_ends_it(api: Serving) -> None:
    thread = await api.thread()
    await _run(api, thread, "fail")
    await api.sdk.threads.update_state(thread, {"trail": ["by hand"]}, as_node="act")

    assert (await api.http.get(f"/threads/{thread}")).json()["status"] == "idle"
    assert await _listed(api, thread) == []


@pytest.mark.parametrize(("told", "listed"), [("fail", True), ("", False)])
async def test_a_turn_cancelled_before_it_began_does_not_count(api: Serving, told: str, listed: bool) -> None:
    thread = await api.thread()
    run = await _run(api, thread, told)
    _, pending = await record(api.stack.pool, thread)
    await api.http.post(f"/threads/{thread}/runs/{pending}/cancel", params={"wait": 1})

    assert (await api.http.get(f"/threads/{thread}")).json()["status"] == "interrupted"
    assert [one["run_id"] for one in await _listed(api, thread)] == ([run] if listed else [])


async def test_a_stateless_run_counts_if_it_did_something(api: Serving) -> None:
    body: dict[str, Any] = {"assistant_id": "graph", "input": {"trail": [], "answer": "fail"}}
    did = await api.http.post("/runs/wait", json=body)
    did_not = await api.http.post("/runs/wait", json={**body, "input": {"trail": 7}})
    threads = [answered.headers["content-location"].split("/")[2] for answered in (did, did_not)]

    assert [row["status"] for row in await _rows(api, threads)] == ["error", "error"]
    assert [len(await _listed(api, thread)) for thread in threads] == [1, 0]


async def _rows(api: Serving, threads: list[str]) -> list[Any]:
    return [await requests.get_thread(api.stack.pool, thread) for thread in threads]


async def test_pages_the_newest_first(database_url: str, temporal: str, held: Held) -> None:
    async with serving(database_url, temporal, {"graph": _acting(held)}) as api:
        runs = [await _run(api, await api.thread(), "fail") for _ in range(3)]
        first = await api.http.get("/threads/abandoned", params={"limit": 2})
        second = await api.http.get("/threads/abandoned", params={"limit": 2, "offset": 2})

        assert [one["run_id"] for one in first.json() + second.json()] == runs[::-1]
        assert first.headers["x-pagination-next"] == "2"
        assert "x-pagination-next" not in second.headers
        for wrong in ({"limit": 0}, {"limit": "x"}, {"offset": -1}):
            assert (await api.http.get("/threads/abandoned", params=wrong)).status_code == 422
