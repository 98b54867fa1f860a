"""What shapes are made of: the table they are entered in, and nodes and graphs that note their calls."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from tests.graphs.calls import called

Graph = Any
Turn = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """A graph and the turns to run on it, one after the other on one thread.

    A turn's `resume` may be a function of the pending interrupts' `{value: id}`, its `checkpoint` one of the thread's
    history (newest first).
    """

    name: str
    make: Callable[[], Graph]
    turns: Sequence[Turn]


SHAPES: list[Shape] = []
START_INPUT: Turn = {"input": {"trail": ["in"]}}


def shape(*turns: Turn) -> Callable[[Callable[[], Graph]], Callable[[], Graph]]:
    def add(make: Callable[[], Graph]) -> Callable[[], Graph]:
        SHAPES.append(Shape(make.__name__, make, turns))
        return make

    return add


def answering(by_question: dict[str, str]) -> Callable[[dict[str, str]], dict[str, str]]:
    """A `resume` that answers these questions and no others."""

    def resume(ids: dict[str, str]) -> dict[str, str]:
        return {ids[question]: answer for question, answer in by_question.items()}

    return resume


class Trail(TypedDict, total=False):
    trail: Annotated[list[str], operator.add]
    n: int


def graph_of(schema: Any) -> Any:
    """A `StateGraph` without its generics, which know neither nodes made by functions nor every kind of handler."""
    return StateGraph(schema)


def node(name: str, **update: Any) -> Callable[[Trail], Any]:
    async def run(state: Trail) -> Any:
        called(name)
        return {"trail": [name], **update}

    run.__name__ = name
    return run


def sync_node(name: str) -> Callable[[Trail], Any]:
    def run(state: Trail) -> Any:
        called(name)
        return {"trail": [name]}

    run.__name__ = name
    return run


def asking(name: str, *questions: str) -> Callable[[Trail], Any]:
    async def run(state: Trail) -> Any:
        called(name)
        answers = [interrupt(question) for question in questions]
        return {"trail": [f"{name}={a}" for a in answers]}

    run.__name__ = name
    return run


def chain(
    *names: str, schema: Any = Trail, nodes: dict[str, Any] | None = None, **compile_args: Any
) -> Graph:
    """A graph of these nodes in a row; `nodes` replaces what some of them run."""
    builder = graph_of(schema)
    for name in names:
        builder.add_node(name, (nodes or {}).get(name) or node(name))
    builder.add_edge(START, names[0])
    for before, after in pairwise(names):
        builder.add_edge(before, after)
    return builder.compile(**compile_args)
