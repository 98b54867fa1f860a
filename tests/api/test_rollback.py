"""Rollback: the run was never there, and its thread is as it was before."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from adapter.store.pool import fetch_one
from tests.api.serving import Serving, fresh, serving
from tests.graphs.slow import Switch, waiting
from tests.servers import Postgres

pytestmark = pytest.mark.slow


async def _rows(served: Serving, thread: str) -> dict[str, list[Any]]:
    """Returns everything that LangGraph's tables hold of a thread."""
    found: dict[str, list[Any]] = {}
    async with served.stack.pool.connection() as conn:
        for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
            cursor = await conn.execute(f"SELECT * FROM {table} WHERE thread_id = %s", (thread,))  # type: ignore[arg-type]
            found[table] = sorted(map(repr, await cursor.fetchall()))
    return found


async def test_cancel_with_rollback(postgres: Postgres, temporal: str) -> None:
    switch = Switch()
    switch.go.set()
    async with serving(postgres.clone(), temporal, {"graph": waiting(switch)}) as served:
        thread = await served.thread()
        await served.wait(thread, input={"trail": ["1"]})
        before, origin = await _rows(served, thread), await _origin(served, thread)
        switch.go.clear()
        switch.started.clear()
        run = await served.run(thread, input={"trail": ["2"]}, stream_mode="values")
        joined = asyncio.create_task(served.http.get(f"/threads/{thread}/runs/{run}/stream"))
        await switch.started.wait()
        answered = await served.http.post(
            f"/threads/{thread}/runs/{run}/cancel", params={"wait": 1, "action": "rollback"}
        )

        assert (answered.status_code, answered.json()) == (200, {})
        assert (await served.http.get(f"/threads/{thread}/runs/{run}")).status_code == 404
        told = (await served.http.get(f"/threads/{thread}")).json()
        assert (told["status"], told["error"]["error"]) == ("idle", "UserRollback")
        assert await _rows(served, thread) == before
        assert await _origin(served, thread) == origin
        assert "event: error" not in (await joined).text
        switch.go.set()
        assert (await served.wait(thread, input={"trail": ["3"]}))["trail"][-4:] == [
            "3",
            "first",
            "wait",
            "last",
        ]


async def _origin(served: Serving, thread: str) -> Any:
    row = await fetch_one(served.stack.pool, "get_thread", thread_id=thread)
    assert row is not None
    return row["origin"]


async def test_a_run_that_waits_is_taken_back_before_it_begins(postgres: Postgres, temporal: str) -> None:
    switch = Switch()
    async with serving(postgres.clone(), temporal, {"graph": waiting(switch)}) as served:
        thread = await served.thread()
        first = await served.run(thread, input={"trail": ["1"]})
        second = await served.run(thread, input={"trail": ["2"]}, multitask_strategy="enqueue")
        third = await served.run(thread, input={"trail": ["3"]}, multitask_strategy="enqueue")
        await switch.started.wait()
        await served.http.post(
            f"/threads/{thread}/runs/{second}/cancel", params={"wait": 1, "action": "rollback"}
        )
        switch.go.set()
        await served.http.get(f"/threads/{thread}/runs/{third}/join")

        assert (await served.http.get(f"/threads/{thread}/runs/{second}")).status_code == 404
        assert [await served.status(thread, run) for run in (first, third)] == ["success", "success"]
        state = (await served.http.get(f"/threads/{thread}/state")).json()
        assert [word for word in state["values"]["trail"] if word.isdigit()] == ["1", "3"]


async def test_double_texting_with_rollback(postgres: Postgres, temporal: str) -> None:
    """The run under way and the one that waits were never there; the new one starts from before them."""
    switch = Switch()
    switch.go.set()
    async with serving(postgres.clone(), temporal, {"graph": waiting(switch)}) as served:
        thread = await served.thread()
        await served.wait(thread, input={"trail": ["1"]})
        switch.go.clear()
        switch.started.clear()
        running = await served.run(thread, input={"trail": ["2"]})
        await switch.started.wait()
        waits = await served.run(thread, input={"trail": ["3"]}, multitask_strategy="enqueue")
        last = await served.run(thread, input={"trail": ["4"]}, multitask_strategy="rollback")
        switch.go.set()
        await served.http.get(f"/threads/{thread}/runs/{last}/join")
        state = (await served.http.get(f"/threads/{thread}/state")).json()
        runs = (await served.http.get(f"/threads/{thread}/runs")).json()

        assert state["values"]["trail"] == ["1", "first", "wait", "last", "4", "first", "wait", "last"]
        assert len(runs) == 2
        assert not {running, waits} & {run["run_id"] for run in runs}
        history = (await served.http.get(f"/threads/{thread}/history?limit=100")).json()
        parents = [one["parent_checkpoint"] and one["parent_checkpoint"]["checkpoint_id"] for one in history]
        assert len(set(parents)) == len(parents)


class State(TypedDict, total=False):
    trail: Annotated[list[str], operator.add]


def _asking(switch: Switch, *, nested: bool) -> Any:
    """ask → wait, where ask takes two answers."""

    async def ask(state: State) -> Any:
        return {"trail": [f"{interrupt('one?')} {interrupt('two?')}"]}

    async def wait(state: State) -> Any:
        switch.started.set()
        await switch.go.wait()
        return {"trail": ["wait"]}

    builder: Any = StateGraph(State)
    builder.add_node("ask", ask).add_node("wait", wait)
    builder.add_edge(START, "ask").add_edge("ask", "wait")
    if not nested:
        return builder.compile()
    outer: Any = StateGraph(State)
    outer.add_node("child", builder.compile()).add_edge(START, "child")
    return outer.compile()


@pytest.mark.parametrize("nested", [False, True], ids=["root", "subgraph"])
async def test_the_question_waits_again(postgres: Postgres, temporal: str, nested: bool) -> None:
    """A rolled back answer is taken back; the ones before it stay."""
    switch = Switch()
    async with serving(postgres.clone(), temporal, {"graph": _asking(switch, nested=nested)}) as served:
        thread = await served.thread()
        await served.wait(thread, input={"trail": []})
        await served.wait(thread, command={"resume": "1"})
        before, told = await _rows(served, thread), (await served.http.get(f"/threads/{thread}")).json()
        run = await served.run(thread, command={"resume": "wrong"})
        await switch.started.wait()
        await served.http.post(
            f"/threads/{thread}/runs/{run}/cancel", params={"wait": 1, "action": "rollback"}
        )
        after = (await served.http.get(f"/threads/{thread}")).json()

        assert await _rows(served, thread) == before
        assert (after["status"], after["interrupts"]) == ("interrupted", told["interrupts"])
        switch.go.set()
        assert (await served.wait(thread, command={"resume": "2"}))["trail"] == ["1 2", "wait"]


async def test_a_run_that_ended_is_not_taken_back(postgres: Postgres, temporal: str) -> None:
    switch = Switch()
    switch.go.set()
    async with serving(postgres.clone(), temporal, {"graph": waiting(switch)}) as served:
        thread = await served.thread()
        run = await served.run(thread, input={"trail": []})
        await served.http.get(f"/threads/{thread}/runs/{run}/join")
        answered = await served.http.post(
            f"/threads/{thread}/runs/{run}/cancel", params={"action": "rollback"}
        )
        unknown = await served.http.post(
            f"/threads/{thread}/runs/{fresh()}/cancel", params={"action": "rollback"}
        )

        assert (answered.status_code, unknown.status_code) == (404, 404)
        assert await served.status(thread, run) == "success"
