"""A durable turn equals a plain LangGraph run: same state, node calls and stream (order in a superstep aside)."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, cast

import orjson
import pytest
import pytest_asyncio
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from adapter._pregel import copy_graph
from adapter.turn_request import command_of
from adapter.wire import debug_json, dumps, error_json
from tests.graphs.calls import CALLS
from tests.graphs.shapes import SHAPES, Shape
from tests.happened import Happened, normal, normal_state, same_events
from tests.servers import Postgres
from tests.stack import Stack, stack

MODES = ["values", "updates", "tasks", "messages-tuple", "custom", "checkpoints", "debug"]


@pytest_asyncio.fixture(scope="module")
async def shapes_stack(postgres: Postgres, temporal: str) -> AsyncIterator[Stack]:
    graphs = {shape.name: shape.make() for shape in SHAPES}
    async with stack(postgres.clone(), temporal, graphs) as running:
        yield running


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.name)
async def test_turns_equal_plain_runs(shape: Shape, shapes_stack: Stack) -> None:
    plain = copy_graph(shape.make(), checkpointer=InMemorySaver())
    plain_thread: RunnableConfig = {"configurable": {"thread_id": str(uuid.uuid4())}}
    thread = str(uuid.uuid4())
    for number, turn in enumerate(shape.turns):
        where = f"{shape.name}, turn {number + 1}"

        CALLS.clear()
        expected = await _plain(plain, plain_thread, turn)
        expected_calls = Counter(CALLS)
        expected_state = await plain.aget_state(plain_thread, subgraphs=True)

        CALLS.clear()
        before = await shapes_stack.state(shape.name, thread)
        history = (
            [c async for c in _history(shapes_stack, shape.name, thread)] if "checkpoint" in turn else []
        )
        row = await shapes_stack.turn(
            shape.name,
            thread=thread,
            stream_mode=MODES,
            stream_subgraphs=True,
            **request_of(turn, before, history),
        )
        events = await shapes_stack.events(str(row["turn_id"]))
        assert events[0][0] == "metadata", where
        happened = [(name, normal(data)) for name, data in events[1:]]
        state = await shapes_stack.state(shape.name, thread)

        assert Counter(CALLS) == expected_calls, where
        assert normal_state(state) == normal_state(expected_state), where
        assert row["status"] == ("error" if expected[-1:] and expected[-1][0] == "error" else "success"), (
            where
        )
        same_events(happened, expected, where)


def request_of(turn: Mapping[str, Any], snapshot: Any, history: list[Any]) -> dict[str, Any]:
    request = dict(turn)
    if callable(request.get("resume")):
        request["command"] = {"resume": request.pop("resume")(_pending(snapshot))}
    if callable(request.get("checkpoint")):
        request["checkpoint"] = dict(request.pop("checkpoint")(history).config["configurable"])
    return request


def _pending(snapshot: Any) -> dict[Any, str]:
    return {interrupt.value: interrupt.id for interrupt in snapshot.interrupts}


async def _history(running: Stack, graph: str, thread: str) -> AsyncGenerator[Any]:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    async with running.project.plain(graph) as plain:
        reading = copy_graph(plain, checkpointer=AsyncPostgresSaver(cast("Any", running.pool)))
        async for snapshot in reading.aget_state_history({"configurable": {"thread_id": thread}}):
            yield snapshot


async def _plain(graph: Any, config: RunnableConfig, turn: Mapping[str, Any]) -> Happened:
    snapshot = await graph.aget_state(config)
    history = [s async for s in graph.aget_state_history(config)] if "checkpoint" in turn else []
    request = request_of(turn, snapshot, history)
    given = command_of(request["command"]) if request.get("command") else request.get("input")
    run: dict[str, Any] = {**config, **request.get("config", {})}
    if "checkpoint" in request:
        run["configurable"] = {**run["configurable"], "checkpoint_id": request["checkpoint"]["checkpoint_id"]}
    happened: Happened = []
    modes = ["messages" if mode == "messages-tuple" else mode for mode in MODES]
    try:
        async for ns, mode, payload in graph.astream(
            given,
            run,
            stream_mode=modes,
            subgraphs=True,
            interrupt_before=request.get("interrupt_before"),
        ):
            told = debug_json(payload) if mode == "debug" else payload
            happened.append(("|".join((mode, *ns)), normal(orjson.loads(dumps(told)))))
    except Exception as exc:
        happened.append(("error", normal(error_json(exc))))
    return happened
