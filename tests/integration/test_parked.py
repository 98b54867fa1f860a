"""A run of a graph waits in its worker for the activity of the next effect; whatever else comes, it is entered anew."""

from __future__ import annotations

import asyncio
import dataclasses
import operator
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import RetryPolicy, TimeoutPolicy
from temporalio import activity
from typing_extensions import TypedDict

from adapter import parked
from adapter.entry import Entry, Outcome
from adapter.parked import Parked, Run
from adapter.store.claims import Claim
from tests.servers import Postgres
from tests.stack import stack
from workflows import names


class State(TypedDict, total=False):
    trail: Annotated[list[str], operator.add]


Node = Callable[..., Any]


class Line:
    """A factory of a graph whose nodes run one after the other; it counts how often the graph was entered."""

    def __init__(self, *nodes: tuple[str, Node | None, dict[str, Any]]) -> None:
        self.nodes = nodes
        self.entries = 0

    @asynccontextmanager
    async def make(self, config: Any) -> AsyncGenerator[Any]:
        self.entries += 1
        builder: Any = StateGraph(State)
        before = START
        for name, node, options in self.nodes:
            builder.add_node(name, node or _adds(name), **options)
            builder.add_edge(before, name)
            before = name
        yield builder.compile()


class Wide(Line):
    """The first node leads to two, both of which lead to the last."""

    @asynccontextmanager
    async def make(self, config: Any) -> AsyncGenerator[Any]:
        self.entries += 1
        first, *middle, last = self.nodes
        builder: Any = StateGraph(State)
        for name, node, options in self.nodes:
            builder.add_node(name, node or _adds(name), **options)
        builder.add_edge(START, first[0])
        for name, _, _ in middle:
            builder.add_edge(first[0], name)
        builder.add_edge([name for name, _, _ in middle], last[0])
        yield builder.compile()


def _adds(name: str) -> Node:
    async def node(state: State) -> Any:
        return {"trail": [name]}

    return node


def plain(*called: str) -> list[tuple[str, Node | None, dict[str, Any]]]:
    return [(name, None, {}) for name in called]


async def ran(postgres: Postgres, temporal: str, line: Line) -> list[str]:
    """Runs a turn; returns what its nodes said."""
    async with stack(postgres.clone(), temporal, {"graph": line.make}) as running:
        thread = str(uuid.uuid4())
        row = await running.turn(thread=thread, input={"trail": []})
        assert row["status"] == "success", row["error"]
        return (await running.state("graph", thread)).values["trail"]


async def test_one_effect_after_the_other_is_one_run(postgres: Postgres, temporal: str) -> None:
    line = Line(*plain("a", "b", "c", "d"))

    assert await ran(postgres, temporal, line) == ["a", "b", "c", "d"]

    assert line.entries == 1 + 1  # the other is the test's own look at the state


async def test_effects_in_a_subgraph(postgres: Postgres, temporal: str) -> None:
    async with Line(*plain("b", "c")).make(None) as inner:
        line = Line(*plain("a"), ("inner", inner, {}), *plain("d"))

        assert await ran(postgres, temporal, line) == ["a", "a", "b", "c", "d"]

    assert line.entries == 1 + 1


async def test_parallel_effects_are_entered_apart(postgres: Postgres, temporal: str) -> None:
    line = Wide(*plain("a", "b", "c", "d"))

    assert sorted(await ran(postgres, temporal, line)) == ["a", "b", "c", "d"]

    assert line.entries == 4 + 1  # with a; b; c; and what they lead to, where d is alone again


async def test_a_node_is_in_the_activity_that_runs_it(postgres: Postgres, temporal: str) -> None:
    def told(state: State) -> Any:
        return {"trail": [activity.info().activity_type]}

    async def told_async(state: State) -> Any:
        return told(state)

    line = Line(("a", told_async, {}), ("b", told, {}), ("c", told_async, {}))

    assert await ran(postgres, temporal, line) == ["a", "b", "c"]


async def test_time_does_not_run_for_a_node_that_waits(postgres: Postgres, temporal: str) -> None:
    line = Line(*plain("a"), ("b", None, {"timeout": TimeoutPolicy(run_timeout=5)}), *plain("c"))

    assert await ran(postgres, temporal, line) == ["a", "b", "c"]

    assert line.entries == 3 + 1 + 1  # begun apart: nobody told the test's stack what the factory starts with


async def test_nobody_waits_for_ever(
    postgres: Postgres, temporal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parked, "SECONDS", 0.0)
    line = Line(*plain("a", "b", "c"))

    assert await ran(postgres, temporal, line) == ["a", "b", "c"]

    assert line.entries > 2


async def test_a_failed_attempt_is_followed_by_a_new_run(postgres: Postgres, temporal: str) -> None:
    failures: list[str] = []

    async def fails(state: State) -> Any:
        trail = state.get("trail", [])
        if not failures:
            failures.append("once")
            trail.append("left behind by a failed attempt")
            raise ValueError("once")
        return {"trail": ["b after " + ",".join(trail)]}

    async def counts(state: State, runtime: Runtime[Any]) -> Any:
        return {"trail": [f"attempt {runtime.execution_info and runtime.execution_info.node_attempt}"]}

    retry = RetryPolicy(retry_on=ValueError, initial_interval=0.01)
    line = Line(*plain("a"), ("b", fails, {"retry_policy": retry}), ("c", counts, {}))

    assert await ran(postgres, temporal, line) == ["a", "b after a", "attempt 1"]

    assert line.entries == 2 + 1


async def test_a_cancel_reaches_what_a_run_went_on_with(postgres: Postgres, temporal: str) -> None:
    began, stopped = asyncio.Event(), asyncio.Event()

    async def hangs(state: State) -> Any:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    line = Line(*plain("a"), ("b", hangs, {}), *plain("c"))
    async with stack(postgres.clone(), temporal, {"graph": line.make}, heartbeat_timeout=1.0) as running:
        thread = str(uuid.uuid4())
        turn = await running.submit(thread=thread, input={"trail": []})
        await began.wait()
        assert line.entries == 1
        await running.client.get_workflow_handle(names.workflow_id(thread)).signal(names.CANCEL, turn)
        row = await running.ended(turn)
        values = (await running.state("graph", thread)).values

    assert row["status"] == "interrupted" and stopped.is_set()
    assert values["trail"] == ["a"]


@pytest.mark.parametrize("most", [1, 8])
async def test_a_worker_does_not_keep_what_waits(postgres: Postgres, temporal: str, most: int) -> None:
    ends: list[Callable[[], Any]] = []

    async def is_the_last(state: State) -> Any:
        await ends.pop()()
        return {"trail": ["a"]}

    line = Line(("a", is_the_last, {}), *plain("b"))
    async with stack(postgres.clone(), temporal, {"graph": line.make}, warm_turns=most) as running:
        for number in range(1, 4):
            thread = str(uuid.uuid4())
            ends.append(running.client.get_workflow_handle(names.workflow_id(thread)).terminate)
            await running.submit(thread=thread, input={"trail": []})
            async with asyncio.timeout(10):
                while ends or _writers() != min(number, most):
                    await asyncio.sleep(0.02)

    assert _writers() == 0


async def test_one_that_runs_elsewhere_is_not_waited_for(postgres: Postgres, temporal: str) -> None:
    line = Line(*plain("a"), ("b", None, {"metadata": {"durable": {"task_queue": "of nobody"}}}))
    async with stack(postgres.clone(), temporal, {"graph": line.make}) as running:
        thread = str(uuid.uuid4())
        await running.submit(thread=thread, input={"trail": []})
        async with asyncio.timeout(10):
            while await running.activities(thread) != [names.BEGIN, "a", "b"]:
                await asyncio.sleep(0.02)
        assert _writers() == 0


async def test_an_error_handler_beside_it(postgres: Postgres, temporal: str) -> None:
    """LangGraph tells of no start of a handler's task: only what failed is known to be not alone."""
    failed = asyncio.Event()

    async def fails(state: State) -> Any:
        await asyncio.sleep(0.05)
        failed.set()
        raise ValueError("once")

    async def follows(state: State) -> Any:
        await failed.wait()
        await asyncio.sleep(0)

    inline = {"metadata": {"durable": "inline"}}
    async with Line(("x", follows, inline), *plain("e")).make(None) as inner:
        builder: Any = StateGraph(State)
        builder.add_node("first", _adds("first"))
        builder.add_node("fails", fails, error_handler=_adds("handled"), **inline)
        builder.add_node("inner", inner).add_node("last", _adds("last"))
        builder.add_edge(START, "first").add_edge("first", "fails")
        builder.add_edge("first", "inner").add_edge("inner", "last")
        async with stack(postgres.clone(), temporal, {"graph": builder.compile()}) as running:
            thread = str(uuid.uuid4())
            row = await running.turn(thread=thread, input={"trail": []})
            state = await running.state("graph", thread)

    assert row["status"] == "success" and state.next == ()
    assert {"first", "handled", "e", "last"} <= set(state.values["trail"])


@pytest.mark.slow
async def test_what_a_node_leaves_behind_talks_on(postgres: Postgres, temporal: str) -> None:
    reporters: list[asyncio.Task[None]] = []

    async def starts(state: State) -> Any:
        write = get_stream_writer()

        async def report() -> None:
            while True:
                write({"alive": True})
                await asyncio.sleep(0.002)

        reporters.append(asyncio.create_task(report()))
        return {"trail": ["a"]}

    line = Line(("a", starts, {}), *plain(*(f"n{number}" for number in range(40))))
    async with stack(postgres.clone(), temporal, {"graph": line.make}, token_delay=0.0) as running:
        row = await running.turn(
            thread=str(uuid.uuid4()),
            input={"trail": []},
            stream_mode=["custom"],
            config={"recursion_limit": 100},
        )
        for reporter in reporters:
            reporter.cancel()

    assert row["status"] == "success", row["error"]


def _writers() -> int:
    return sum(task.get_name().startswith("writer-") for task in asyncio.all_tasks())


HEAD = "1f0-head"
FITS = Entry(claim=Claim("thread", "", 2, 1), allow=("task",), run_id="run", checkpoint=HEAD)


@pytest.mark.parametrize(
    "changed",
    [
        {"attempt": 2},
        {"allow": ("another",)},
        {"allow": ("task", "another")},
        {"branches": (("task",),)},
        {"checkpoint": "1f0-earlier"},
        {"run_id": "of a reset"},
        {"fork": True},
        {"head": "1f0-later"},
        {"status": "interrupted"},
        {"undone": True},
    ],
    ids=str,
)
async def test_only_the_activity_it_waits_for_goes_on_with_it(changed: dict[str, Any]) -> None:
    run = parked_run()
    await run.outcome()
    of_row = {name: changed[name] for name in ("head", "status", "undone") if name in changed}
    of_entry = {name: value for name, value in changed.items() if name not in of_row}

    assert run.fits(FITS) and run.fits_turn(_row())
    assert not (run.fits(dataclasses.replace(FITS, **of_entry)) and run.fits_turn(_row(**of_row)))

    await run.discard()


@pytest.mark.parametrize("ticks", range(1, 8))
async def test_a_cancel_that_comes_as_it_begins_to_wait(ticks: int) -> None:
    ended: list[str] = []
    run, parked_runs = parked_run(ended), Parked(8)
    asking = asyncio.create_task(run.outcome())
    for _ in range(ticks):
        await asyncio.sleep(0)
    asking.cancel()
    (told,) = await asyncio.gather(asking, return_exceptions=True)
    await asyncio.sleep(0.01)

    if told == Outcome(checkpoint=HEAD):
        parked_runs.keep("turn", run)
        assert run.fits(FITS)
        await parked_runs.close()
    assert ended == ["ended"]


async def test_a_run_takes_the_place_of_an_earlier_one() -> None:
    ended: list[str] = []
    parked_runs = Parked(8)
    for run in (parked_run(ended), parked_run(ended)):
        await run.outcome()
        parked_runs.keep("turn", run)
    await parked_runs.close()

    assert ended == ["ended", "ended"]


def parked_run(ended: list[str] | None = None) -> Run:
    run = Run(FITS.run_id)

    def nothing(*_: Any) -> None:
        return None

    unused: Any = SimpleNamespace(hold=nothing, go_on=nothing, claim=None, error=None)

    async def whole() -> Outcome:
        try:
            await asyncio.sleep(0)
            await run.park(Outcome(checkpoint=HEAD), "task", unused, unused)
            return Outcome()
        finally:
            if ended is not None:
                ended.append("ended")

    run.begin(whole())
    return run


def _row(**changed: Any) -> Any:
    return SimpleNamespace(**{"status": "running", "run_id": "run", "head": HEAD, "undone": False, **changed})
