"""Shapes that stop and go on: interrupts, breakpoints, forks, commands from the client."""

from __future__ import annotations

from operator import itemgetter

from langgraph.graph import START

from tests.graphs.table import START_INPUT, Graph, Trail, answering, asking, chain, graph_of, node, shape


@shape(START_INPUT, {"command": {"resume": "yes"}}, START_INPUT, {"command": {"resume": "no"}})
def one_interrupt() -> Graph:
    return chain("a", "ask", "b", nodes={"ask": asking("ask", "ok?")})


@shape(START_INPUT, {"command": {"resume": "1"}}, {"command": {"resume": "2"}}, {"command": {"resume": "3"}})
def several_interrupts_in_one_node() -> Graph:
    return chain("a", "ask", "b", nodes={"ask": asking("ask", "one?", "two?", "three?")})


def _parallel_asking() -> Graph:
    builder = graph_of(Trail)
    builder.add_node("a", node("a"))
    builder.add_node("ask1", asking("ask1", "one?")).add_node("ask2", asking("ask2", "two?"))
    builder.add_node("work", node("work")).add_node("join", node("join"))
    builder.add_edge(START, "a")
    for name in ("ask1", "ask2", "work"):
        builder.add_edge("a", name)
    builder.add_edge(["ask1", "ask2", "work"], "join")
    return builder.compile()


@shape(START_INPUT, {"resume": answering({"one?": "1", "two?": "2"})})
def parallel_interrupts_by_map() -> Graph:
    return _parallel_asking()


@shape(START_INPUT, {"resume": answering({"two?": "2"})}, {"resume": answering({"one?": "1"})})
def parallel_interrupts_one_by_one() -> Graph:
    return _parallel_asking()


@shape(START_INPUT, {"resume": answering({"two?": "2"})}, {"command": {"resume": "1"}})
def parallel_interrupts_map_then_scalar() -> Graph:
    return _parallel_asking()


@shape(START_INPUT, {"command": {"resume": "both"}})
def scalar_answer_to_several_interrupts_fails() -> Graph:
    return _parallel_asking()


@shape(START_INPUT, {"command": {"resume": "yes"}})
def interrupt_in_a_subgraph() -> Graph:
    return chain(
        "a", "child", "b", nodes={"child": chain("x", "ask", "y", nodes={"ask": asking("ask", "ok?")})}
    )


@shape(
    START_INPUT,
    {"resume": answering({"left?": "L"})},
    {"resume": answering({"right?": "R"})},
)
def interrupts_in_parallel_subgraphs() -> Graph:
    builder = graph_of(Trail)
    for side in ("left", "right"):
        inner = chain("x", "ask", "y", nodes={"ask": asking(f"ask_{side}", f"{side}?")})
        builder.add_node(side, inner)
        builder.add_edge(START, side)
    builder.add_node("plain", chain("p", "q")).add_edge(START, "plain")
    builder.add_node("join", node("join")).add_edge(["left", "right", "plain"], "join")
    return builder.compile()


@shape(START_INPUT, {"command": {"resume": "1"}}, {"command": {"resume": "2"}})
def three_levels_with_interrupts() -> Graph:
    innermost = chain("p", "deep", "q", nodes={"deep": asking("deep", "deep?")})
    middle = chain("x", "inner", "mid", "y", nodes={"inner": innermost, "mid": asking("mid", "mid?")})
    return chain("a", "child", "b", nodes={"child": middle})


@shape(START_INPUT, {"command": {"resume": "yes"}})
def interrupt_beside_a_long_branch() -> Graph:
    builder = graph_of(Trail)
    builder.add_node("ask", asking("ask", "ok?")).add_node("branch", chain("x", "y", "z"))
    builder.add_node("join", node("join"))
    builder.add_edge(START, "ask").add_edge(START, "branch").add_edge(["ask", "branch"], "join")
    return builder.compile()


@shape(START_INPUT, {"input": None}, {"input": None})
def breakpoints_at_the_root() -> Graph:
    return chain("a", "b", "c", interrupt_before=["b"], interrupt_after=["b"])


@shape({**START_INPUT, "interrupt_before": ["b"]}, {"input": None})
def breakpoint_of_the_request() -> Graph:
    return chain("a", "b", "c")


@shape(START_INPUT, {"input": None})
def breakpoint_in_a_parallel_subgraph() -> Graph:
    builder = graph_of(Trail)
    builder.add_node("left", chain("x", "y", interrupt_before=["y"])).add_node("right", chain("r", "s", "t"))
    builder.add_node("join", node("join"))
    builder.add_edge(START, "left").add_edge(START, "right").add_edge(["left", "right"], "join")
    return builder.compile()


@shape(START_INPUT, {"input": None, "checkpoint": itemgetter(2)})
def fork_from_an_earlier_checkpoint() -> Graph:
    return chain("a", "b", "c")


@shape(START_INPUT, {"input": {"trail": ["again"]}, "checkpoint": itemgetter(1)})
def fork_with_new_input() -> Graph:
    return chain("a", "child", "c", nodes={"child": chain("x", "y")})


@shape(START_INPUT, {"command": {"update": {"trail": ["from outside"]}, "goto": "c"}})
def command_from_the_client() -> Graph:
    return chain("a", "ask", "b", "c", nodes={"ask": asking("ask", "ok?")})


@shape(START_INPUT, {"command": {"resume": "yes"}})
def answer_given_at_a_breakpoint() -> Graph:
    return chain("a", "ask", "b", nodes={"ask": asking("ask", "ok?")}, interrupt_before=["ask"])
