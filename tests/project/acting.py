"""Graphs whose effect nodes act on the provider, for tests that disturb them; `mark` tells one thread's acts apart."""

from __future__ import annotations

import asyncio
import operator
from pathlib import Path
from typing import Annotated, Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from adapter.effects import effect
from deploy.examples.booking import client

INLINE: dict[str, Any] = {"durable": "inline"}


class State(TypedDict, total=False):
    mark: str
    gate: str
    fail: bool
    trail: Annotated[list[str], operator.add]


async def _charge(state: State, what: str) -> str:
    receipt = await effect("charge", client.charge, booking_id=f"{state.get('mark')} {what}", amount=80)
    return f"{what} {receipt['object']}"


async def _notify(state: State, what: str) -> str:
    receipt = await effect("notify", client.notify, booking_id=f"{state.get('mark')} {what}", text="paid")
    return f"{what} {receipt['object']}"


def _charging(name: str) -> Any:
    async def node(state: State) -> Any:
        return {"trail": [await _charge(state, name)]}

    return node


def _noting(name: str) -> Any:
    async def node(state: State) -> Any:
        return {"trail": [name]}

    return node


async def _notifying(state: State) -> Any:
    return {"trail": [await _notify(state, "notify")]}


def _sequence() -> Any:
    """One effect after the other between two inline nodes."""
    builder: Any = StateGraph(State)
    builder.add_node("plan", _noting("plan"), metadata=INLINE)
    builder.add_node("charge", _charging("charge"))
    builder.add_node("notify", _notifying)
    builder.add_node("finish", _noting("finish"), metadata=INLINE)
    builder.add_edge(START, "plan").add_edge("plan", "charge").add_edge("charge", "notify")
    builder.add_edge("notify", "finish").add_edge("finish", END)
    return builder.compile()


def _fan_out() -> Any:
    """Three effects at a time, and one that joins them."""
    builder: Any = StateGraph(State)
    builder.add_node("plan", _noting("plan"), metadata=INLINE)
    builder.add_node("join", _notifying)
    builder.add_edge(START, "plan")
    for name in ("left", "middle", "right"):
        builder.add_node(name, _charging(name))
        builder.add_edge("plan", name)
    builder.add_edge(["left", "middle", "right"], "join")
    return builder.compile()


def _nested() -> Any:
    """Effects before, inside and after a subgraph, which gives back the trail that it was given, too."""
    child: Any = StateGraph(State)
    child.add_node("inner", _charging("inner"))
    child.add_node("innermost", _charging("innermost"))
    child.add_edge(START, "inner").add_edge("inner", "innermost")
    builder: Any = StateGraph(State)
    builder.add_node("before", _charging("before"))
    builder.add_node("child", child.compile())
    builder.add_node("after", _notifying)
    builder.add_edge(START, "before").add_edge("before", "child").add_edge("child", "after")
    return builder.compile()


async def _asks(state: State) -> Any:
    charged = await _charge(state, "charge")
    answer = interrupt("Shall I tell them?")
    return {"trail": [charged, str(answer), await _notify(state, "notify")]}


def _asking() -> Any:
    """An effect, a question and another effect in one node."""
    builder: Any = StateGraph(State)
    builder.add_node("ask", _asks)
    builder.add_node("finish", _noting("finish"), metadata=INLINE)
    builder.add_edge(START, "ask").add_edge("ask", "finish")
    return builder.compile()


async def _holds(state: State) -> Any:
    await _notify(state, "hold")
    await asyncio.Event().wait()


def _holding() -> Any:
    """An effect, then a node that acts and never returns."""
    builder: Any = StateGraph(State)
    builder.add_node("charge", _charging("charge"))
    builder.add_node("hold", _holds)
    builder.add_edge(START, "charge").add_edge("charge", "hold")
    return builder.compile()


async def _fails(state: State) -> Any:
    while not Path(state.get("gate", "")).exists():
        await asyncio.sleep(0.02)
    if state.get("fail"):
        raise ValueError("as it was told to")
    return {"trail": ["went well"]}


def _failing() -> Any:
    """An effect, then a node that waits for a file and fails if it was told to."""
    builder: Any = StateGraph(State)
    builder.add_node("charge", _charging("charge"))
    builder.add_node("fails", _fails)
    builder.add_edge(START, "charge").add_edge("charge", "fails")
    return builder.compile()


async def take_back(receipt: client.Receipt, *, idempotency_key: str) -> None:
    """Undoes a charge."""
    order = str(receipt["parameters"]["booking_id"])
    await client.refund(order_id=order, amount=80, idempotency_key=idempotency_key)


def _charging_for_now(name: str) -> Any:
    async def node(state: State) -> Any:
        booking = f"{state.get('mark')} {name}"
        await effect("charge", client.charge, booking_id=booking, amount=80, compensate=take_back)
        return {"trail": [name]}

    return node


def _taking_back() -> Any:
    """Two charges, then a node that fails, which takes the charges back."""
    builder: Any = StateGraph(State)
    builder.add_node("first", _charging_for_now("first"))
    builder.add_node("second", _charging_for_now("second"))
    builder.add_node("fails", _fails)
    builder.add_edge(START, "first").add_edge("first", "second").add_edge("second", "fails")
    return builder.compile()


sequence = _sequence()
fan_out = _fan_out()
nested = _nested()
asking = _asking()
holding = _holding()
failing = _failing()
taking_back = _taking_back()
