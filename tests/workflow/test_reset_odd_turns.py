"""Resets of turns that begin, or keep their state, in uncommon ways; and what stands in the way of a reset."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from adapter.store import stops
from tests.graphs.shapes import interrupts_in_parallel_subgraphs
from tests.graphs.slow import Switch, failing
from tests.servers import Postgres
from tests.stack import Stack, stack
from tests.undo.booked import CALLS, State, booked, booking, chain, keys_of, reset_provider
from tests.workflow.resets import closed, reset

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def provider() -> None:
    reset_provider()


@pytest.mark.parametrize("after", ["turn:begin", "a", "b"])
async def test_a_subgraph_with_a_history_of_its_own(postgres: Postgres, temporal: str, after: str) -> None:
    inner = chain(b=booking("b"), b2=booking("b2")).compile(checkpointer=True)
    builder: Any = StateGraph(State)
    builder.add_node("a", booking("a")).add_node("child", inner).add_node("c", booking("c"))
    builder.add_edge(START, "a").add_edge("a", "child").add_edge("child", "c")
    async with stack(postgres.clone(), temporal, {"graph": builder.compile()}) as running:
        thread = str(uuid.uuid4())
        await running.turn(thread=thread, input={"trail": ["0"]})
        CALLS.clear()
        turn = await running.submit(thread=thread, apart=after == "turn:begin", input={"trail": ["1"]})
        await running.ended(turn)
        await closed(running, thread)
        before = (await running.state("graph", thread)).values
        await reset(running, thread, after=after)
        await closed(running, thread)

        assert (await running.ended(turn))["status"] == "success"
        assert (await running.state("graph", thread)).values == before
        assert [keys_of(what) for what in ("a", "b", "b2", "c")] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "command",
    [
        {"goto": {"node": "b", "input": {"trail": []}}},
        {"goto": "b"},
        {"update": {"trail": ["u"]}, "goto": "c"},
    ],
    ids=["send", "goto", "update"],
)
@pytest.mark.parametrize("after", ["", "turn:begin"])
async def test_a_command(postgres: Postgres, temporal: str, command: dict[str, Any], after: str) -> None:
    graph = chain(a=booking("a"), b=booking("b"), c=booking("c")).compile()
    async with stack(postgres.clone(), temporal, {"graph": graph}) as running:
        thread = str(uuid.uuid4())
        await running.turn(thread=thread, input={"trail": ["1"]})
        CALLS.clear()
        turn = await running.submit(thread=thread, command=command)
        await running.ended(turn)
        await closed(running, thread)
        before, run = (await running.state("graph", thread)).values, await _run_id(running, thread)
        await reset(running, thread, run, after="")
        await closed(running, thread)
        await reset(running, thread, run, after=after)
        await closed(running, thread)

        assert (await running.ended(turn))["status"] == "success"
        assert (await running.state("graph", thread)).values == before
        assert all(keys_of(what) == 1 for what in set(booked()))


async def _run_id(running: Stack, thread: str) -> str:
    return (await running.client.get_workflow_handle(f"thread/{thread}").describe()).run_id


async def test_a_turn_at_a_breakpoint(postgres: Postgres, temporal: str) -> None:
    graph = chain(a=booking("a"), b=booking("b"), c=booking("c")).compile()
    async with stack(postgres.clone(), temporal, {"graph": graph}) as running:
        thread = str(uuid.uuid4())
        await running.turn(thread=thread, input={"trail": ["1"]})
        turn = await running.submit(thread=thread, input={"trail": ["2"]}, interrupt_before=["c"])
        await running.ended(turn)
        await closed(running, thread)
        before = await running.state("graph", thread)
        await reset(running, thread, after="")
        await closed(running, thread)
        await running.ended(turn)
        after = await running.state("graph", thread)

        assert (after.values, after.next) == (before.values, before.next)
        assert after.config != before.config


async def test_a_later_turn_that_never_began_is_not_in_the_way(postgres: Postgres, temporal: str) -> None:
    switch = Switch(failures=1)
    async with stack(postgres.clone(), temporal, {"graph": failing(switch)}) as running:
        thread = str(uuid.uuid4())
        failed = await running.submit(thread=thread, input={"trail": []})
        await switch.started.wait()
        run = await _run_id(running, thread)
        waits = await running.submit(thread=thread, input={"trail": []})
        assert await stops.cancel_pending(running.pool, waits)
        switch.go.set()
        await running.ended(failed)
        await closed(running, thread)
        await reset(running, thread, run)
        await closed(running, thread)

        assert (await running.ended(failed))["status"] == "success"


async def test_a_refused_answer_is_not_in_the_way(postgres: Postgres, temporal: str) -> None:
    async with stack(postgres.clone(), temporal, {"graph": interrupts_in_parallel_subgraphs()}) as running:
        thread = str(uuid.uuid4())
        turn = await running.submit(thread=thread, input={"trail": []})
        await running.ended(turn)
        await closed(running, thread)
        run = await _run_id(running, thread)
        refused = await running.turn(thread=thread, command={"resume": "one answer, several questions"})
        await closed(running, thread)
        before = await running.state("graph", thread)
        await reset(running, thread, run, after="")
        await closed(running, thread)

        assert refused["status"] == "error"
        assert (await running.ended(turn))["status"] == "success"
        assert len((await running.state("graph", thread)).interrupts) == len(before.interrupts)
