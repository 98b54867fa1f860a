"""Shapes of graphs inside graphs, as nodes and invoked by nodes."""

from __future__ import annotations

from typing import Any

from langgraph.graph import START
from langgraph.types import Command, Send

from tests.graphs.calls import called
from tests.graphs.shapes_flow import counting
from tests.graphs.table import START_INPUT, Graph, Trail, asking, chain, graph_of, node, shape


@shape(START_INPUT, START_INPUT)
def nested_subgraph() -> Graph:
    return chain("a", "child", "b", nodes={"child": chain("x", "y")})


@shape(START_INPUT)
def parallel_subgraphs() -> Graph:
    builder = graph_of(Trail)
    builder.add_node("a", node("a"))
    builder.add_node("left", chain("l1", "l2", "l3")).add_node("right", chain("r1", "r2"))
    builder.add_node("plain", node("plain")).add_node("join", node("join"))
    builder.add_edge(START, "a")
    for name in ("left", "right", "plain"):
        builder.add_edge("a", name)
    builder.add_edge(["left", "right", "plain"], "join")
    return builder.compile()


@shape({"input": {"trail": [], "n": 0}, "config": {"recursion_limit": 7}}, {"input": {"trail": [], "n": 0}})
def limit_of_an_invoked_graph() -> Graph:
    """A graph that a node invokes has the whole limit of its run, however little of it the run has left."""
    inner = counting(6)

    async def invoking(state: Trail) -> Any:
        called("invoking")
        return {"n": (await inner.ainvoke({"trail": [], "n": state.get("n", 0)}))["n"]}

    return chain("a", "b", "c", "invoking", nodes={"invoking": invoking})


@shape({"input": {"trail": [], "n": 0}})
def limit_of_an_invoked_graph_of_its_own() -> Graph:
    inner = counting(6).with_config({"recursion_limit": 3})

    async def invoking(state: Trail) -> Any:
        called("invoking")
        return {"n": (await inner.ainvoke({"trail": [], "n": state.get("n", 0)}))["n"]}

    return chain("a", "invoking", nodes={"invoking": invoking})


@shape({"input": {"trail": [], "n": 3}})
def send_to_subgraphs() -> Graph:
    def spread(state: Trail) -> list[Send]:
        return [Send("worker", {"trail": [str(i)]}) for i in range(state.get("n", 0))]

    builder = graph_of(Trail)
    builder.add_node("plan", node("plan")).add_node("worker", chain("x", "y")).add_node("sum", node("sum"))
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", spread, ["worker"]).add_edge("worker", "sum")
    return builder.compile()


@shape(START_INPUT)
def fan_out_inside_a_subgraph() -> Graph:
    inner = graph_of(Trail)
    for name in ("x", "y1", "y2", "z"):
        inner.add_node(name, node(name))
    inner.add_edge(START, "x").add_edge("x", "y1").add_edge("x", "y2").add_edge(["y1", "y2"], "z")
    return chain("a", "child", "b", nodes={"child": inner.compile()})


@shape(START_INPUT)
def command_to_the_parent() -> Graph:
    async def leave(state: Trail) -> Command[Any]:
        called("leave")
        return Command(graph=Command.PARENT, goto="after", update={"trail": ["leave"]})

    inner = graph_of(Trail)
    inner.add_node("x", node("x")).add_node("leave", leave)
    inner.add_edge(START, "x").add_edge("x", "leave")
    builder = graph_of(Trail)
    builder.add_node("child", inner.compile(), destinations=("after", "never"))
    builder.add_node("after", node("after")).add_node("never", node("never"))
    builder.add_edge(START, "child")
    return builder.compile()


@shape(START_INPUT, START_INPUT, START_INPUT)
def subgraph_that_remembers() -> Graph:
    inner = graph_of(Trail)
    inner.add_node("x", node("x")).add_node("y", node("y"))
    inner.add_edge(START, "x").add_edge("x", "y")
    return chain("a", "child", "b", nodes={"child": inner.compile(checkpointer=True)})


@shape(START_INPUT, START_INPUT)
def subgraph_without_memory() -> Graph:
    return chain("a", "child", "b", nodes={"child": chain("x", "y", checkpointer=False)})


@shape(START_INPUT, START_INPUT)
def node_that_invokes_a_graph() -> Graph:
    inner = chain("x", "y")

    async def calls(state: Trail) -> Any:
        called("calls")
        result = await inner.ainvoke({"trail": ["sub"]})
        return {"trail": [f"got {len(result['trail'])}"]}

    return chain("a", "calls", "b", nodes={"calls": calls})


@shape(START_INPUT, START_INPUT, START_INPUT)
def node_that_invokes_a_graph_that_remembers() -> Graph:
    inner = chain("x", "y", checkpointer=True)

    async def calls(state: Trail) -> Any:
        called("calls")
        result = await inner.ainvoke({"trail": ["sub"]})
        return {"trail": [f"got {len(result['trail'])}"]}

    return chain("a", "calls", "b", nodes={"calls": calls})


@shape(START_INPUT, {"command": {"resume": "yes"}})
def node_that_invokes_a_graph_that_asks() -> Graph:
    inner = chain("x", "ask", nodes={"ask": asking("ask", "ok?")})

    async def calls(state: Trail) -> Any:
        called("calls")
        result = await inner.ainvoke({"trail": ["sub"]})
        return {"trail": result["trail"]}

    return chain("a", "calls", "b", nodes={"calls": calls})
