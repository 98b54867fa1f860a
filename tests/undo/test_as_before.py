"""A rolled back turn leaves its thread and LangGraph's tables as they were, row by row (I12)."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from langgraph.types import interrupt

from adapter import engine
from adapter.store import stops
from adapter.store.pool import fetch_one
from tests.graphs.slow import Switch
from tests.servers import Postgres
from tests.stack import stack
from tests.undo.booked import State, booking, chain, roll_back, tables, thread_row
from tests.workflow.resets import closed, reset
from workflows import names

pytestmark = pytest.mark.slow


def _holds(switch: Switch, fails: list[str] | None = None) -> Any:
    async def wait(state: State) -> Any:
        if fails:
            raise ValueError("declined")
        switch.started.set()
        await switch.go.wait()
        return {"trail": ["wait"]}

    return wait


async def _plain(state: State) -> Any:
    return {"trail": ["a"]}


async def _ask(state: State) -> Any:
    return {"trail": [str(interrupt("sure?"))]}


@pytest.mark.parametrize("before", ["failed", "cancelled", "at a breakpoint"])
async def test_the_thread(postgres: Postgres, temporal: str, before: str) -> None:
    switch, fails = Switch(), ["yes"] if before == "failed" else list[str]()
    graph = chain(a=booking("a"), wait=_holds(switch, fails)).compile()
    async with stack(postgres.clone(), temporal, {"graph": graph}) as running:
        thread = str(uuid.uuid4())
        options: dict[str, Any] = {"interrupt_before": ["wait"]} if before == "at a breakpoint" else {}
        first = await running.submit(thread=thread, input={"trail": ["1"]}, **options)
        if before == "cancelled":
            await switch.started.wait()
            await running.client.get_workflow_handle(names.workflow_id(thread)).signal(names.CANCEL, first)
            await stops.notify_cancel(running.pool, first)
        await running.ended(first)
        await closed(running, thread)
        rows, row = await tables(running, thread), await thread_row(running, thread)
        fails.clear()
        switch.started.clear()
        second = await running.submit(thread=thread, input={"trail": ["2"]})
        await switch.started.wait()
        await roll_back(running, thread, second)
        await closed(running, thread)

        assert await tables(running, thread) == rows
        assert await thread_row(running, thread) == row


async def test_the_graph_that_the_state_belongs_to(postgres: Postgres, temporal: str) -> None:
    switch = Switch()
    graphs = {"graph": chain(a=booking("a")).compile(), "other": chain(wait=_holds(switch)).compile()}
    async with stack(postgres.clone(), temporal, graphs) as running:
        thread = str(uuid.uuid4())
        await running.turn(thread=thread, input={"trail": ["1"]})
        await closed(running, thread)
        row = await thread_row(running, thread)
        second = await running.submit("other", thread=thread, input={"trail": ["2"]})
        await switch.started.wait()
        await roll_back(running, thread, second)
        await closed(running, thread)

        assert await thread_row(running, thread) == row


@pytest.mark.parametrize("ended", ["success", "error"])
async def test_a_resumed_turn_that_was_reset(postgres: Postgres, temporal: str, ended: str) -> None:
    switch, fails = Switch(), ["yes"] if ended == "error" else list[str]()
    switch.go.set()
    graph = chain(ask=_ask, wait=_holds(switch, fails)).compile()
    async with stack(postgres.clone(), temporal, {"graph": graph}) as running:
        thread = str(uuid.uuid4())
        await running.turn(thread=thread, input={"trail": ["1"]})
        await closed(running, thread)
        rows, row = await tables(running, thread), await thread_row(running, thread)
        second = await running.submit(thread=thread, command={"resume": "yes"})
        assert (await running.ended(second))["status"] == ended
        await closed(running, thread)
        fails.clear()
        switch.go.clear()
        switch.started.clear()
        await reset(running, thread, after="ask" if ended == "success" else None)
        await switch.started.wait()
        await roll_back(running, thread, second)
        await closed(running, thread)

        assert await tables(running, thread) == rows
        assert await thread_row(running, thread) == row


async def test_a_first_turn_that_was_begun_over(postgres: Postgres, temporal: str) -> None:
    switch, fails = Switch(), ["yes"]
    graph = chain(a=_plain, wait=_holds(switch, fails)).compile()
    async with stack(postgres.clone(), temporal, {"graph": graph}) as running:
        thread = str(uuid.uuid4())
        turn = await running.submit(thread=thread, input={"trail": ["1"]})
        await running.ended(turn)
        await closed(running, thread)
        fails.clear()
        await reset(running, thread, after="")
        await switch.started.wait()
        await roll_back(running, thread, turn)
        await closed(running, thread)

        assert not any((await tables(running, thread)).values())


async def test_a_turn_that_is_discarded_while_it_begins(
    postgres: Postgres, temporal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = engine.make_plan
    discarded: list[str] = []

    async def discard_first(pool: Any, saver: Any, turn: Any, **options: Any) -> Any:
        if not discarded:
            discarded.append(turn.turn_id)
            assert await stops.discard_pending(pool, turn.turn_id)
        return await planned(pool, saver, turn, **options)

    monkeypatch.setattr(engine, "make_plan", discard_first)
    async with stack(postgres.clone(), temporal, {"graph": chain(a=booking("a")).compile()}) as running:
        thread = str(uuid.uuid4())
        turn = await running.submit(thread=thread, input={"trail": ["never"]})
        await closed(running, thread)

        assert discarded == [turn]
        assert await fetch_one(running.pool, "get_turn", turn_id=turn) is None
        assert not any((await tables(running, thread)).values())
