"""Graphs that wait, fail and fork in ways tests steer."""

from __future__ import annotations

import asyncio
import operator
from dataclasses import dataclass, field
from typing import Annotated, Any

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from adapter.effects import idempotency_key


@dataclass
class Switch:
    """What a test holds of a graph: when the node started, when it may end, how often it shall fail."""

    started: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    failures: int = 0
    cleaned: list[str] = field(default_factory=list[str])
    keys: list[str] = field(default_factory=list[str])


class State(TypedDict, total=False):
    trail: Annotated[list[str], operator.add]


def waiting(switch: Switch) -> Any:
    """first → wait (until told) → last."""

    async def first(state: State) -> Any:
        return {"trail": ["first"]}

    async def wait(state: State) -> Any:
        switch.started.set()
        try:
            await switch.go.wait()
        finally:
            switch.cleaned.append("wait")
        return {"trail": ["wait"]}

    async def last(state: State) -> Any:
        return {"trail": ["last"]}

    return _chain(first=first, wait=wait, last=last)


def failing(switch: Switch) -> Any:
    """first → pay (fails as often as told) → last."""

    async def first(state: State) -> Any:
        await asyncio.sleep(0)
        return {"trail": ["first"]}

    async def pay(state: State) -> Any:
        switch.keys.append(idempotency_key("charge"))
        switch.started.set()
        await asyncio.wait_for(switch.go.wait(), 30)
        if switch.failures > 0:
            switch.failures -= 1
            raise ValueError("declined")
        return {"trail": ["pay"]}

    async def last(state: State) -> Any:
        return {"trail": ["last"]}

    return _chain(first=first, pay=pay, last=last)


def _chain(**nodes: Any) -> Any:
    builder = StateGraph(State)
    previous = START
    for name, node in nodes.items():
        builder.add_node(name, node).add_edge(previous, name)
        previous = name
    return builder.compile()
