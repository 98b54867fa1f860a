"""Reset to an earlier event forks from that checkpoint, with the same idempotency keys (I4, I7)."""

from __future__ import annotations

import operator
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from typing import Annotated, Any

import pytest
import pytest_asyncio
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt
from typing_extensions import TypedDict

from adapter.effects import idempotency_key
from adapter.store import requests
from tests.graphs.slow import Switch, failing, waiting
from tests.servers import Postgres
from tests.stack import Stack, stack
from tests.workflow.resets import closed, reset

pytestmark = pytest.mark.slow


class State(TypedDict, total=False):
    trail: Annotated[list[str], operator.add]


def _noting(keys: list[tuple[str, str]], broken: list[str], name: str) -> Any:
    async def run(state: State) -> Any:
        keys.append((name, idempotency_key("charge")))
        if name in broken:
            raise ValueError("declined")
        return {"trail": [name]}

    return run


def _chain(keys: list[tuple[str, str]], broken: list[str]) -> Any:
    """a → b → c."""
    builder: Any = StateGraph(State)
    previous = START
    for name in ("a", "b", "c"):
        builder.add_node(name, _noting(keys, broken, name)).add_edge(previous, name)
        previous = name
    return builder.compile()


def _three(state: State) -> list[Send]:
    return [Send("b", {}) for _ in range(3)]


def _wide(keys: list[tuple[str, str]], broken: list[str]) -> Any:
    """a → three of b → c."""
    builder: Any = StateGraph(State)
    for name in ("a", "b", "c"):
        builder.add_node(name, _noting(keys, broken, name))
    builder.add_edge(START, "a").add_edge("b", "c")
    builder.add_conditional_edges("a", _three, ["b"])
    return builder.compile()


def _nested(keys: list[tuple[str, str]], broken: list[str]) -> Any:
    """a → (b → b2) → c."""
    inner: Any = StateGraph(State)
    inner.add_node("b", _noting(keys, broken, "b")).add_node("b2", _noting(keys, broken, "b2"))
    inner.add_edge(START, "b").add_edge("b", "b2")
    builder: Any = StateGraph(State)
    builder.add_node("a", _noting(keys, broken, "a"))
    builder.add_node("child", inner.compile())
    builder.add_node("c", _noting(keys, broken, "c"))
    builder.add_edge(START, "a").add_edge("a", "child").add_edge("child", "c")
    return builder.compile()


async def _children(running: Stack, thread: str) -> Counter[str | None]:
    """Returns how many children each root checkpoint has."""
    found: Counter[str | None] = Counter()
    saver = AsyncPostgresSaver(running.pool)  # type: ignore[arg-type]
    async for one in saver.alist({"configurable": {"thread_id": thread, "checkpoint_ns": ""}}):
        parent = one.parent_config
        found[parent["configurable"]["checkpoint_id"] if parent else None] += 1  # type: ignore[typeddict-item]
    return found


SHAPES = {
    "chain": (_chain, ["a", "b", "c"]),
    "wide": (_wide, ["a", "b", "b", "b", "c"]),
    "nested": (_nested, ["a", "b", "b2", "c"]),
}


# What the nodes of the shapes share with the test that runs.
KEYS: list[tuple[str, str]] = []
BROKEN: list[str] = []


@pytest_asyncio.fixture(scope="module")
async def running(postgres: Postgres, temporal: str) -> AsyncIterator[Stack]:
    graphs = {shape: build(KEYS, BROKEN) for shape, (build, _) in SHAPES.items()}
    async with stack(postgres.clone(), temporal, graphs) as it:
        yield it


@pytest.mark.parametrize("fails", [True, False], ids=["failed", "succeeded"])
@pytest.mark.parametrize("after", ["", "turn:begin", "a", "b"])
@pytest.mark.parametrize("shape", SHAPES)
async def test_the_turn_is_done_again_from_there(running: Stack, shape: str, after: str, fails: bool) -> None:
    _, trail = SHAPES[shape]
    KEYS.clear()
    BROKEN[:] = ["c"] if fails else []
    thread = str(uuid.uuid4())
    await running.turn(shape, thread=thread, input={"trail": ["-"]}, config={"recursion_limit": 4})
    before = len(KEYS)
    turn = await running.submit(
        shape,
        thread=thread,
        apart=after == "turn:begin",
        input={"trail": ["+"]},
        config={"recursion_limit": 4},
        stream_mode="values",
    )
    first = await running.ended(turn)
    await closed(running, thread)
    BROKEN.clear()
    left_behind = await running.state(shape, thread)

    await reset(running, thread, after=after)
    await closed(running, thread)
    row = await running.ended(turn)

    assert (first["status"], row["status"]) == ("error" if fails else "success", "success")
    first_turn = ["-"] if fails else ["-", *trail]
    assert (await running.state(shape, thread)).values["trail"][len(first_turn) :] != []
    assert (await running.state(shape, thread)).values["trail"][-len(trail) - 1 :] == ["+", *trail]
    # Whatever ran again, ran under the key it had.
    mine = KEYS[before:]
    assert {name for name, _ in mine} == set(trail)
    assert len(set(mine)) == len(trail)
    # The branch that was left behind is still there, next to the one that the thread is on now.
    children = await _children(running, thread)
    assert max(children.values()) == (1 if (shape, after, fails) == ("chain", "b", True) else 2)
    again = [c async for c in AsyncPostgresSaver(running.pool).alist(left_behind.config, limit=1)]  # type: ignore[arg-type]
    assert len(again) == 1
    assert (await requests.get_thread(running.pool, thread))["status"] == "idle"


async def test_a_reset_into_a_running_turn(postgres: Postgres, temporal: str) -> None:
    switch = Switch()
    async with stack(postgres.clone(), temporal, {"graph": waiting(switch)}) as running:
        thread = str(uuid.uuid4())
        turn = await running.submit(thread=thread, apart=True, input={"trail": []})
        await switch.started.wait()
        switch.started.clear()
        await reset(running, thread, after="turn:begin")
        await switch.started.wait()
        switch.go.set()
        row = await running.ended(turn)
        await closed(running, thread)

        assert row["status"] == "success"
        assert (await running.state("graph", thread)).values["trail"] == ["first", "wait", "last"]


async def test_a_resumed_turn_asks_again(postgres: Postgres, temporal: str) -> None:
    """The answer belongs to the question of the branch that is left behind."""
    asked: list[str] = []

    async def ask(state: State) -> Any:
        asked.append(idempotency_key("mail"))
        return {"trail": [str(interrupt("sure?"))]}

    builder: Any = StateGraph(State)
    builder.add_node("ask", ask).add_node("last", lambda _: {"trail": ["last"]})  # type: ignore[misc]
    builder.add_edge(START, "ask").add_edge("ask", "last")
    async with stack(postgres.clone(), temporal, {"graph": builder.compile()}) as running:
        thread = str(uuid.uuid4())
        await running.turn(thread=thread, input={"trail": []})
        turn = await running.submit(thread=thread, command={"resume": "yes"})
        await running.ended(turn)
        await closed(running, thread)
        await reset(running, thread, after="")
        await closed(running, thread)
        row = await running.ended(turn)
        waits = await running.state("graph", thread)
        await running.turn(thread=thread, command={"resume": "no"})

        assert row["status"] == "success"
        assert [i.value for i in waits.interrupts] == ["sure?"]
        assert (await running.state("graph", thread)).values["trail"] == ["no", "last"]
        assert len(set(asked)) == 1


async def test_a_later_turn_that_the_reset_ended_goes_on(postgres: Postgres, temporal: str) -> None:
    """Temporal ends a workflow's running run when an older one is reset."""
    switch = Switch(failures=1)
    switch.go.set()
    async with stack(postgres.clone(), temporal, {"graph": failing(switch)}) as running:
        thread = str(uuid.uuid4())
        failed = await running.submit(thread=thread, input={"trail": ["1"]})
        await running.ended(failed)
        await closed(running, thread)
        old = await running.client.get_workflow_handle(f"thread/{thread}").describe()
        switch.go.clear()
        switch.started.clear()
        later = await running.submit(thread=thread, input={"trail": ["2"]})
        waits = await running.submit(thread=thread, input={"trail": ["3"]})
        await switch.started.wait()
        await reset(running, thread, old.run_id)
        await closed(running, thread)
        switch.go.set()
        rows = [await running.ended(turn) for turn in (failed, later, waits)]

        assert [row["status"] for row in rows] == ["error", "success", "success"]
        trail = (await running.state("graph", thread)).values["trail"]
        assert trail == ["1", "first", "2", "first", "pay", "last", "3", "first", "pay", "last"]
