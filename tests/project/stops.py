"""Graphs that stop, for tests that kill the worker just then. Pure nodes are inline, so that begin runs them."""

from __future__ import annotations

import operator
from typing import Annotated, Any

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

INLINE: dict[str, Any] = {"durable": "inline"}


class State(TypedDict, total=False):
    trail: Annotated[list[str], operator.add]


def _node(name: str) -> Any:
    async def run(state: State) -> Any:
        return {"trail": [name]}

    return run


def _chain(*names: str, **compile_args: Any) -> Any:
    builder: Any = StateGraph(State)
    previous = START
    for name in names:
        builder.add_node(name, _node(name), metadata=INLINE)
        builder.add_edge(previous, name)
        previous = name
    return builder.compile(**compile_args)


breakpoint_graph = _chain("a", "approved", interrupt_before=["approved"])


def _inside() -> Any:
    builder: Any = StateGraph(State)
    builder.add_node("child", _chain("x", "approved", interrupt_before=["approved"]))
    builder.add_node("last", _node("last"), metadata=INLINE)
    builder.add_edge(START, "child").add_edge("child", "last")
    return builder.compile()


breakpoint_inside = _inside()


async def _asks(state: State) -> Any:
    return {"trail": [f"{interrupt('one?')} {interrupt('two?')}"]}


def _asking() -> Any:
    builder: Any = StateGraph(State)
    builder.add_node("ask", _asks).add_edge(START, "ask")
    return builder.compile()


asking_twice = _asking()
