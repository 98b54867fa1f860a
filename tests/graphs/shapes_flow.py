"""Shapes of one graph's control flow: rows, fans, sends, loops, limits."""

from __future__ import annotations

from typing import Any

from langgraph.cache.memory import InMemoryCache
from langgraph.config import get_stream_writer
from langgraph.graph import END, START
from langgraph.types import CachePolicy, Command, Send

from tests.graphs.calls import called
from tests.graphs.table import START_INPUT, Graph, Trail, chain, graph_of, node, shape, sync_node


@shape(START_INPUT, START_INPUT)
def linear() -> Graph:
    return chain("a", "b", "c")


@shape(START_INPUT)
def sync_and_async_nodes() -> Graph:
    return chain("a", "b", "c", nodes={"a": sync_node("a"), "c": sync_node("c")})


@shape(START_INPUT)
def inline_nodes() -> Graph:
    builder = graph_of(Trail)
    for name in ("a", "b", "c", "d"):
        builder.add_node(name, node(name), metadata={"durable": "inline"} if name in "ac" else None)
    builder.add_edge(START, "a").add_edge("a", "b").add_edge("b", "c").add_edge("c", "d")
    return builder.compile()


@shape(START_INPUT)
def fan_out_and_join() -> Graph:
    builder = graph_of(Trail)
    for name in ("a", "b", "c", "d", "e"):
        builder.add_node(name, node(name))
    builder.add_edge(START, "a")
    for name in ("b", "c", "d"):
        builder.add_edge("a", name)
    builder.add_edge(["b", "c", "d"], "e")
    return builder.compile()


@shape({"input": {"trail": [], "n": 5}})
def send_to_many() -> Graph:
    def spread(state: Trail) -> list[Send]:
        return [Send("work", {"n": i}) for i in range(state.get("n", 0))]

    async def work(state: Trail) -> Any:
        called("work")
        return {"trail": [f"work{state.get('n')}"]}

    builder = graph_of(Trail)
    builder.add_node("plan", node("plan")).add_node("work", work).add_node("sum", node("sum"))
    builder.add_edge(START, "plan").add_conditional_edges("plan", spread, ["work"]).add_edge("work", "sum")
    return builder.compile()


@shape(START_INPUT)
def deferred() -> Graph:
    builder = graph_of(Trail)
    for name in ("a", "b", "b2", "c"):
        builder.add_node(name, node(name))
    builder.add_node("last", node("last"), defer=True)
    builder.add_edge(START, "a").add_edge("a", "b").add_edge("a", "c").add_edge("b", "b2")
    builder.add_edge("b2", "last").add_edge("c", "last")
    return builder.compile()


@shape({"input": {"trail": [], "n": 2}})
def send_at_the_start() -> Graph:
    def spread(state: Trail) -> list[Send]:
        return [Send("work", {"n": i}) for i in range(state.get("n", 0))]

    builder = graph_of(Trail)
    builder.add_node("work", node("work"))
    builder.add_conditional_edges(START, spread, ["work"])
    return builder.compile()


@shape({"input": {"trail": [], "n": 0}})
def loop() -> Graph:
    async def count(state: Trail) -> Any:
        called("count")
        return {"trail": ["count"], "n": state.get("n", 0) + 1}

    def again(state: Trail) -> str:
        return "count" if state.get("n", 0) < 3 else END

    builder = graph_of(Trail)
    builder.add_node("count", count).add_node("check", node("check"))
    builder.add_edge(START, "count").add_edge("count", "check")
    builder.add_conditional_edges("check", again, ["count", END])
    return builder.compile()


def counting(times: int) -> Graph:
    """A node that runs so many times."""

    async def count(state: Trail) -> Any:
        called("count")
        return {"n": state.get("n", 0) + 1}

    def again(state: Trail) -> str:
        return "count" if state.get("n", 0) < times else END

    builder = graph_of(Trail)
    builder.add_node("count", count)
    builder.add_edge(START, "count").add_conditional_edges("count", again, ["count", END])
    return builder.compile()


@shape(START_INPUT)
def command_goto() -> Graph:
    async def route(state: Trail) -> Command[Any]:
        called("route")
        return Command(goto="right", update={"trail": ["route"]})

    builder = graph_of(Trail)
    builder.add_node("route", route, destinations=("left", "right"))
    builder.add_node("left", node("left")).add_node("right", node("right"))
    builder.add_edge(START, "route")
    return builder.compile()


@shape({**START_INPUT, "config": {"recursion_limit": 4}})
def recursion_limit() -> Graph:
    builder = graph_of(Trail)
    builder.add_node("a", node("a")).add_node("b", node("b"))
    builder.add_edge(START, "a").add_edge("a", "b").add_edge("b", "a")
    return builder.compile()


@shape({**START_INPUT, "config": {"recursion_limit": 3}})
def recursion_limit_just_reached() -> Graph:
    return chain("a", "b", "c")


@shape({**START_INPUT, "config": {"recursion_limit": 4}})
def recursion_limit_not_reached() -> Graph:
    return chain("a", "b", "c")


@shape({"input": {"trail": [], "n": 0}})
def no_limit_given() -> Graph:
    return counting(30)


@shape({"input": {"trail": [], "n": 0}}, {"input": {"trail": [], "n": 0}, "config": {"recursion_limit": 7}})
def limit_of_the_graph() -> Graph:
    return counting(6).with_config({"recursion_limit": 5})


@shape(START_INPUT, START_INPUT)
def cached_node() -> Graph:
    def same_key(*_: Any) -> str:
        return "same"

    builder = graph_of(Trail)
    builder.add_node("a", node("a"), cache_policy=CachePolicy(key_func=same_key))
    builder.add_node("b", node("b"))
    builder.add_edge(START, "a").add_edge("a", "b")
    return builder.compile(cache=InMemoryCache())


@shape(START_INPUT)
def custom_events() -> Graph:
    async def writes(state: Trail) -> Any:
        called("writes")
        get_stream_writer()({"progress": 1})
        return {"trail": ["writes"]}

    def writes_sync(state: Trail) -> Any:
        called("writes_sync")
        get_stream_writer()({"progress": 2})
        return {"trail": ["writes_sync"]}

    return chain("a", "writes", "child", nodes={
        "writes": writes, "child": chain("x", "writes_sync", nodes={"writes_sync": writes_sync})})  # fmt: skip
