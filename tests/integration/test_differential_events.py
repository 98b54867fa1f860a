"""Stream mode "events" equals plain LangGraph's `astream_events` (order inside a superstep aside): one run a turn,
whose ids hang together, however many entries it took."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

import orjson
import pytest
import pytest_asyncio
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.constants import TAG_HIDDEN

from adapter._pregel import copy_graph
from adapter.store.pool import fetch_all
from adapter.turn_request import command_of
from adapter.wire import dumps
from tests.graphs.shapes import SHAPES, Shape
from tests.happened import normal
from tests.integration.test_differential import request_of
from tests.servers import Postgres
from tests.stack import Stack, stack

Told = Mapping[str, Any]

# One of each kind; all fifty agree, and take three times as long.
KINDS = {
    "node_that_fails",
    "node_with_an_error_handler",
    "node_with_a_retry_policy",
    "cached_node",
    "one_interrupt",
    "scalar_answer_to_several_interrupts_fails",
    "interrupts_in_parallel_subgraphs",
    "three_levels_with_interrupts",
    "breakpoints_at_the_root",
    "functional_entrypoint",
    "agent_as_a_subgraph",
    "nested_subgraph",
    "send_at_the_start",
    "send_to_subgraphs",
    "command_to_the_parent",
    "subgraph_that_remembers",
    "node_that_invokes_a_graph",
    "node_that_invokes_a_graph_that_asks",
}
CHOSEN = [shape for shape in SHAPES if shape.name in KINDS]

# An attempt that failed leaves no start of its node behind, as it leaves no tokens.
RETRIED = {"node_with_a_retry_policy"}
# Refused before the graph is entered.
REFUSED = {"scalar_answer_to_several_interrupts_fails"}


@pytest_asyncio.fixture(scope="module")
async def shapes_stack(postgres: Postgres, temporal: str) -> AsyncIterator[Stack]:
    graphs = {shape.name: shape.make() for shape in CHOSEN}
    # Each entry reads all of the state anew, as after the loss of a worker.
    async with stack(postgres.clone(), temporal, graphs, warm_turns=0) as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize("shape", CHOSEN, ids=lambda s: s.name)
async def test_events_equal_plain_runs(shape: Shape, shapes_stack: Stack) -> None:
    plain = copy_graph(shape.make(), checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": str(uuid.uuid4())}, "run_name": shape.name}
    thread = str(uuid.uuid4())
    for number, turn in enumerate(shape.turns):
        expected = await _plain(plain, config, turn)
        request = request_of(turn, await shapes_stack.state(shape.name, thread), [])
        row = await shapes_stack.turn(shape.name, thread=thread, stream_mode=["events"], **request)
        told = await _told(shapes_stack, str(row["turn_id"]))
        _hang_together(told, str(row["turn_id"]))
        got: Counter[Any] = _counted(told)
        wanted: Counter[Any] = _counted(expected)
        if shape.name in RETRIED:
            wanted = Counter(list(wanted))
        if shape.name in REFUSED and not got:
            wanted = Counter()
        report = [f"+ {e}" for e in (got - wanted).elements()] + [f"- {e}" for e in (wanted - got).elements()]
        assert got == wanted, "\n".join([f"turn {number + 1}", *report])


async def _told(running: Stack, turn_id: str) -> list[Told]:
    """Returns the events of a turn's log; its offsets have gaps where an attempt's were taken back."""
    rows = await fetch_all(running.pool, "read_events", turn_id=turn_id, after=0, limit=100_000)
    return [orjson.loads(row["data"]) for row in rows if row["event"] == "events"]


async def _plain(graph: Any, config: RunnableConfig, turn: Told) -> list[Told]:
    request = request_of(turn, await graph.aget_state(config), [])
    given = command_of(request["command"]) if request.get("command") else request.get("input")
    told: list[Told] = []
    try:
        async for event in graph.astream_events(
            given,
            {**config, **request.get("config", {})},
            version="v2",
            interrupt_before=request.get("interrupt_before"),
        ):
            streams_root = event["event"] == "on_chain_stream" and not event["parent_ids"]
            if not streams_root and TAG_HIDDEN not in event["tags"]:
                told.append(orjson.loads(dumps(event)))
    except Exception:
        assert told, "it failed before it began"
    return told


def _counted(events: list[Told]) -> Counter[Any]:
    names = {str(event["run_id"]): str(event["name"]) for event in events}
    return Counter(
        (
            str(event["event"]),
            "/".join([*(names.get(one, "?") for one in event["parent_ids"]), str(event["name"])]),
            ",".join(sorted(event["tags"])),
            str(event["metadata"].get("langgraph_step")),
            normal(_sorted(event["data"]) if event["parent_ids"] else sorted(event["data"])),
        )
        for event in events
    )


def _sorted(data: Any) -> Any:
    """A state's trail holds what ran in one superstep in any order."""
    if isinstance(data, dict):
        return {key: _sorted(value) for key, value in cast("dict[str, Any]", data).items()}
    if isinstance(data, list) and all(isinstance(one, str) for one in cast("list[Any]", data)):
        return sorted(cast("list[str]", data))
    return cast("Any", data)


def _hang_together(events: list[Told], turn_id: str) -> None:
    """Asserts that every event's run and the runs around it were started before it, once."""
    started: set[str] = set()
    for event in events:
        assert not event["parent_ids"] or event["parent_ids"][0] == turn_id
        assert set(event["parent_ids"]) <= started, event
        if event["event"].endswith("_start"):
            assert event["run_id"] not in started, event
            started.add(event["run_id"])
        assert event["run_id"] in started, event
