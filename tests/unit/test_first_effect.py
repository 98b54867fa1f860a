"""Which effect a graph starts with, so that a turn can begin in that effect's activity."""

from __future__ import annotations

from typing import Any, cast

import pytest
from langgraph.func import entrypoint
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy, TimeoutPolicy
from typing_extensions import TypedDict

from adapter.first import FirstEffect, first_effect


class _State(TypedDict, total=False):
    text: str


async def _node(state: _State) -> _State:
    return {}


def _graph(**options: Any) -> Any:
    builder: Any = StateGraph(_State)
    builder.add_node("a", _node, **options).add_node("b", _node)
    return builder.add_edge("a", "b")


def _a(state: _State) -> str:
    return "a"


def _durable(**options: Any) -> Any:
    return _graph(metadata={"durable": options}).add_edge(START, "a")


def _around(inner: Any) -> Any:
    builder: Any = StateGraph(_State)
    return builder.add_node("a", inner).add_edge(START, "a").compile()


@entrypoint()
async def _functional(given: str) -> str:
    return given


@pytest.mark.parametrize(
    ("graph", "first"),
    [
        (_graph().add_edge(START, "a").compile(), FirstEffect("a", {})),
        (_durable(heartbeat_timeout=5).compile(), FirstEffect("a", {"hb": 5.0})),
        (
            _graph(timeout=TimeoutPolicy(run_timeout=1), retry_policy=RetryPolicy())
            .add_edge(START, "a")
            .compile(),
            FirstEffect("a", {"stc": 31.0}),
        ),
    ],
)
def test_one_effect(graph: Any, first: FirstEffect) -> None:
    assert first_effect(graph) == first


@pytest.mark.parametrize(
    "graph",
    [
        _graph(metadata={"durable": "inline"}).add_edge(START, "a").compile(),
        _graph().add_edge(START, "a").add_edge(START, "b").compile(),
        _graph().add_conditional_edges(START, _a, ["a", "b"]).compile(),
        _graph().add_edge(START, "a").add_conditional_edges(START, _a, ["a"]).compile(),
        _durable(task_queue="gpu").compile(),
        _durable(max_attempts=1).compile(),
        _around(_graph().add_edge(START, "a").compile()),
        cast("Any", _functional),
    ],
    ids=[
        "inline",
        "two",
        "a choice",
        "one and a choice",
        "its queue",
        "its attempts",
        "a subgraph",
        "functional",
    ],
)
def test_none(graph: Any) -> None:
    assert first_effect(graph) is None
