"""Graphs whose nodes note the idempotency keys they are given."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy, Send, interrupt
from typing_extensions import TypedDict

from adapter.effects import idempotency_key

KEYS: list[tuple[str, str]] = []


class State(TypedDict, total=False):
    trail: Annotated[list[str], operator.add]
    n: int


def keyed(name: str, then: Callable[[], Any] = lambda: None, **key: str) -> Any:
    async def run(state: State) -> Any:
        KEYS.append((name, idempotency_key("charge", **key)))
        then()
        return {"trail": [name]}

    run.__name__ = name
    return run


def fails_until(times: int) -> Callable[[], None]:
    left = [times]

    def then() -> None:
        if left[0] > 0:
            left[0] -= 1
            raise ConnectionError("not yet")

    return then


def one(then: Callable[[], Any] = lambda: None, **node: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("pay", keyed("pay", then), **node)
    builder.add_edge(START, "pay")
    return builder.compile()


def retried() -> Any:
    policy = RetryPolicy(initial_interval=0.01, jitter=False)
    return one(fails_until(2), retry_policy=policy)


def failing_once() -> Any:
    return one(fails_until(1))


def asking() -> Any:
    return one(lambda: interrupt("ok?"))


def asking_twice() -> Any:
    def ask() -> None:
        interrupt("ok?")
        interrupt("sure?")

    return one(ask)


def looping() -> Any:
    async def count(state: State) -> Any:
        KEYS.append(("count", idempotency_key("charge")))
        return {"n": state.get("n", 0) + 1}

    def again(state: State) -> str:
        return "count" if state.get("n", 0) < 3 else END

    builder = StateGraph(State)
    builder.add_node("count", count).add_edge(START, "count")
    builder.add_conditional_edges("count", again, ["count", END])
    return builder.compile()


def sending() -> Any:
    def spread(state: State) -> list[Send]:
        return [Send("pay", {"n": i}) for i in range(3)]

    builder = StateGraph(State)
    builder.add_node("pay", keyed("pay"))
    builder.add_conditional_edges(START, spread, ["pay"])
    return builder.compile()


def nested() -> Any:
    inner = StateGraph(State)
    inner.add_node("pay", keyed("pay"))
    inner.add_edge(START, "pay")
    child = inner.compile()
    builder = StateGraph(State)
    builder.add_node("left", child).add_node("right", child).add_node("pay", keyed("pay"))
    builder.add_edge(START, "left").add_edge("left", "right").add_edge("right", "pay")
    return builder.compile()


def business() -> Any:
    builder = StateGraph(State)
    builder.add_node("first", keyed("first", key="order-1")).add_node(
        "second", keyed("second", key="order-1")
    )
    builder.add_edge(START, "first").add_edge("first", "second")
    return builder.compile()


def inside_a_nested_run() -> Any:
    inner = StateGraph(State)
    inner.add_node("x", keyed("x")).add_node("y", keyed("y"))
    inner.add_edge(START, "x").add_edge("x", "y")
    graph = inner.compile()

    async def calls(state: State) -> Any:
        KEYS.append(("calls", idempotency_key("charge")))
        await graph.ainvoke({"trail": []})
        return {"trail": ["calls"]}

    builder = StateGraph(State)
    builder.add_node("calls", calls).add_edge(START, "calls")
    return builder.compile()


GRAPHS: dict[str, Callable[[], Any]] = {
    f.__name__: f
    for f in (
        one,
        retried,
        failing_once,
        asking,
        asking_twice,
        looping,
        sending,
        nested,
        business,
        inside_a_nested_run,
    )
}
