"""Shapes whose nodes fail."""

from __future__ import annotations

from typing import Any

from langgraph.errors import NodeError
from langgraph.graph import START
from langgraph.types import RetryPolicy

from tests.graphs.calls import called
from tests.graphs.table import START_INPUT, Graph, Trail, chain, graph_of, node, shape


@shape(START_INPUT)
def node_that_fails() -> Graph:
    async def fails(state: Trail) -> Any:
        called("fails")
        raise ValueError("no")

    return chain("a", "fails", "b", nodes={"fails": fails})


@shape(START_INPUT)
def node_with_an_error_handler() -> Graph:
    async def fails(state: Trail) -> Any:
        called("fails")
        raise ValueError("no")

    async def handle(state: Trail, error: NodeError) -> Any:
        called("handle")
        return {"trail": [f"handled {error.error}"]}

    builder = graph_of(Trail)
    builder.add_node("a", node("a")).add_node("fails", fails, error_handler=handle)
    builder.add_node("b", node("b"))
    builder.add_edge(START, "a").add_edge("a", "fails").add_edge("fails", "b")
    return builder.compile()


@shape(START_INPUT)
def node_with_a_retry_policy() -> Graph:
    tries: list[int] = []

    async def flaky(state: Trail) -> Any:
        called("flaky")
        tries.append(1)
        if len(tries) % 3:
            raise ConnectionError("not yet")
        return {"trail": ["flaky"]}

    builder = graph_of(Trail)
    builder.add_node(
        "flaky", flaky, retry_policy=RetryPolicy(initial_interval=0.01, jitter=False, max_attempts=3)
    )
    builder.add_node("b", node("b"))
    builder.add_edge(START, "flaky").add_edge("flaky", "b")
    return builder.compile()
