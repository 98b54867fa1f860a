"""The table of graph shapes that durable turns are held against plain LangGraph on. Add a shape: write a function
that returns a compiled graph, decorate it with the turns to run on it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from langgraph.cache.memory import InMemoryCache
from langgraph.config import get_stream_writer
from langgraph.errors import NodeError
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import CachePolicy, Command, RetryPolicy, Send, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

from tests.graphs.calls import called
from tests.graphs.models import scripted_agent

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


def shape(*turns: Turn) -> Callable[[Callable[[], Graph]], Callable[[], Graph]]:
    def add(make: Callable[[], Graph]) -> Callable[[], Graph]:
        SHAPES.append(Shape(make.__name__, make, turns))
        return make

    return add


class Trail(TypedDict, total=False):
    trail: Annotated[list[str], operator.add]
    n: int


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
    builder = StateGraph(schema)
    for name in names:
        builder.add_node(name, (nodes or {}).get(name) or node(name))
    builder.add_edge(START, names[0])
    for before, after in zip(names, names[1:], strict=False):
        builder.add_edge(before, after)
    return builder.compile(**compile_args)


START_INPUT: Turn = {"input": {"trail": ["in"]}}


@shape(START_INPUT, START_INPUT)
def linear() -> Graph:
    return chain("a", "b", "c")


@shape(START_INPUT)
def sync_and_async_nodes() -> Graph:
    return chain("a", "b", "c", nodes={"a": sync_node("a"), "c": sync_node("c")})


@shape(START_INPUT)
def inline_nodes() -> Graph:
    builder = StateGraph(Trail)
    for name in ("a", "b", "c", "d"):
        builder.add_node(name, node(name), metadata={"durable": "inline"} if name in "ac" else None)
    builder.add_edge(START, "a").add_edge("a", "b").add_edge("b", "c").add_edge("c", "d")
    return builder.compile()


@shape(START_INPUT)
def fan_out_and_join() -> Graph:
    builder = StateGraph(Trail)
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

    builder = StateGraph(Trail)
    builder.add_node("plan", node("plan")).add_node("work", work).add_node("sum", node("sum"))
    builder.add_edge(START, "plan").add_conditional_edges("plan", spread, ["work"]).add_edge("work", "sum")
    return builder.compile()


@shape(START_INPUT)
def deferred() -> Graph:
    builder = StateGraph(Trail)
    for name in ("a", "b", "b2", "c"):
        builder.add_node(name, node(name))
    builder.add_node("last", node("last"), defer=True)
    builder.add_edge(START, "a").add_edge("a", "b").add_edge("a", "c").add_edge("b", "b2")
    builder.add_edge("b2", "last").add_edge("c", "last")
    return builder.compile()


@shape({"input": {"trail": [], "n": 0}})
def loop() -> Graph:
    async def count(state: Trail) -> Any:
        called("count")
        return {"trail": ["count"], "n": state.get("n", 0) + 1}

    builder = StateGraph(Trail)
    builder.add_node("count", count).add_node("check", node("check"))
    builder.add_edge(START, "count").add_edge("count", "check")
    builder.add_conditional_edges("check", lambda s: "count" if s["n"] < 3 else END, ["count", END])
    return builder.compile()


@shape(START_INPUT)
def command_goto() -> Graph:
    async def route(state: Trail) -> Command[Any]:
        called("route")
        return Command(goto="right", update={"trail": ["route"]})

    builder = StateGraph(Trail)
    builder.add_node("route", route, destinations=("left", "right"))
    builder.add_node("left", node("left")).add_node("right", node("right"))
    builder.add_edge(START, "route")
    return builder.compile()


@shape(START_INPUT, START_INPUT)
def nested_subgraph() -> Graph:
    return chain("a", "child", "b", nodes={"child": chain("x", "y")})


@shape(START_INPUT)
def parallel_subgraphs() -> Graph:
    builder = StateGraph(Trail)
    builder.add_node("a", node("a"))
    builder.add_node("left", chain("l1", "l2", "l3")).add_node("right", chain("r1", "r2"))
    builder.add_node("plain", node("plain")).add_node("join", node("join"))
    builder.add_edge(START, "a")
    for name in ("left", "right", "plain"):
        builder.add_edge("a", name)
    builder.add_edge(["left", "right", "plain"], "join")
    return builder.compile()


@shape({"input": {"trail": [], "n": 3}})
def send_to_subgraphs() -> Graph:
    builder = StateGraph(Trail)
    builder.add_node("plan", node("plan")).add_node("worker", chain("x", "y")).add_node("sum", node("sum"))
    builder.add_edge(START, "plan")
    builder.add_conditional_edges(
        "plan", lambda s: [Send("worker", {"trail": [str(i)]}) for i in range(s["n"])], ["worker"]
    )
    builder.add_edge("worker", "sum")
    return builder.compile()


@shape(START_INPUT)
def fan_out_inside_a_subgraph() -> Graph:
    inner = StateGraph(Trail)
    for name in ("x", "y1", "y2", "z"):
        inner.add_node(name, node(name))
    inner.add_edge(START, "x").add_edge("x", "y1").add_edge("x", "y2").add_edge(["y1", "y2"], "z")
    return chain("a", "child", "b", nodes={"child": inner.compile()})


@shape(START_INPUT)
def command_to_the_parent() -> Graph:
    async def leave(state: Trail) -> Command[Any]:
        called("leave")
        return Command(graph=Command.PARENT, goto="after", update={"trail": ["leave"]})

    inner = StateGraph(Trail)
    inner.add_node("x", node("x")).add_node("leave", leave)
    inner.add_edge(START, "x").add_edge("x", "leave")
    builder = StateGraph(Trail)
    builder.add_node("child", inner.compile(), destinations=("after", "never"))
    builder.add_node("after", node("after")).add_node("never", node("never"))
    builder.add_edge(START, "child")
    return builder.compile()


@shape(START_INPUT, {"command": {"resume": "yes"}}, START_INPUT, {"command": {"resume": "no"}})
def one_interrupt() -> Graph:
    return chain("a", "ask", "b", nodes={"ask": asking("ask", "ok?")})


@shape(START_INPUT, {"command": {"resume": "1"}}, {"command": {"resume": "2"}}, {"command": {"resume": "3"}})
def several_interrupts_in_one_node() -> Graph:
    return chain("a", "ask", "b", nodes={"ask": asking("ask", "one?", "two?", "three?")})


def _parallel_asking() -> Graph:
    builder = StateGraph(Trail)
    builder.add_node("a", node("a"))
    builder.add_node("ask1", asking("ask1", "one?")).add_node("ask2", asking("ask2", "two?"))
    builder.add_node("work", node("work")).add_node("join", node("join"))
    builder.add_edge(START, "a")
    for name in ("ask1", "ask2", "work"):
        builder.add_edge("a", name)
    builder.add_edge(["ask1", "ask2", "work"], "join")
    return builder.compile()


@shape(START_INPUT, {"resume": lambda ids: {ids["one?"]: "1", ids["two?"]: "2"}})
def parallel_interrupts_by_map() -> Graph:
    return _parallel_asking()


@shape(START_INPUT, {"resume": lambda ids: {ids["two?"]: "2"}}, {"resume": lambda ids: {ids["one?"]: "1"}})
def parallel_interrupts_one_by_one() -> Graph:
    return _parallel_asking()


@shape(START_INPUT, {"resume": lambda ids: {ids["two?"]: "2"}}, {"command": {"resume": "1"}})
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
    {"resume": lambda ids: {ids["left?"]: "L"}},
    {"resume": lambda ids: {ids["right?"]: "R"}},
)
def interrupts_in_parallel_subgraphs() -> Graph:
    builder = StateGraph(Trail)
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
    builder = StateGraph(Trail)
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
    builder = StateGraph(Trail)
    builder.add_node("left", chain("x", "y", interrupt_before=["y"])).add_node("right", chain("r", "s", "t"))
    builder.add_node("join", node("join"))
    builder.add_edge(START, "left").add_edge(START, "right").add_edge(["left", "right"], "join")
    return builder.compile()


@shape(START_INPUT, START_INPUT, START_INPUT)
def subgraph_that_remembers() -> Graph:
    inner = StateGraph(Trail)
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


@shape(START_INPUT, {"input": None, "checkpoint": lambda history: history[2]})
def fork_from_an_earlier_checkpoint() -> Graph:
    return chain("a", "b", "c")


@shape(START_INPUT, {"input": {"trail": ["again"]}, "checkpoint": lambda history: history[1]})
def fork_with_new_input() -> Graph:
    return chain("a", "child", "c", nodes={"child": chain("x", "y")})


@shape(START_INPUT, {"command": {"update": {"trail": ["from outside"]}, "goto": "c"}})
def command_from_the_client() -> Graph:
    return chain("a", "ask", "b", "c", nodes={"ask": asking("ask", "ok?")})


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

    builder = StateGraph(Trail)
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

    builder = StateGraph(Trail)
    builder.add_node(
        "flaky", flaky, retry_policy=RetryPolicy(initial_interval=0.01, jitter=False, max_attempts=3)
    )
    builder.add_node("b", node("b"))
    builder.add_edge(START, "flaky").add_edge("flaky", "b")
    return builder.compile()


@shape({**START_INPUT, "config": {"recursion_limit": 4}})
def recursion_limit() -> Graph:
    builder = StateGraph(Trail)
    builder.add_node("a", node("a")).add_node("b", node("b"))
    builder.add_edge(START, "a").add_edge("a", "b").add_edge("b", "a")
    return builder.compile()


@shape({**START_INPUT, "config": {"recursion_limit": 3}})
def recursion_limit_just_reached() -> Graph:
    return chain("a", "b", "c")


@shape({**START_INPUT, "config": {"recursion_limit": 4}})
def recursion_limit_not_reached() -> Graph:
    return chain("a", "b", "c")


@shape(START_INPUT, START_INPUT)
def cached_node() -> Graph:
    builder = StateGraph(Trail)
    builder.add_node("a", node("a"), cache_policy=CachePolicy(key_func=lambda *_: "same"))
    builder.add_node("b", node("b"))
    builder.add_edge(START, "a").add_edge("a", "b")
    return builder.compile(cache=InMemoryCache())


@shape({"input": 3}, {"input": 4})
def functional_entrypoint() -> Graph:
    @task
    async def double(x: int) -> int:
        called("double")
        return 2 * x

    @task
    def add(x: int, y: int) -> int:
        called("add")
        return x + y

    @entrypoint()
    async def flow(x: int, *, previous: Any = None) -> Any:
        called("flow")
        doubled = [double(i) for i in range(x)]
        total = 0
        for future in doubled:
            total = await add(total, await future)
        return entrypoint.final(value=total, save=(previous or 0) + total)

    return flow


@shape({"input": 2}, {"command": {"resume": "yes"}})
def functional_entrypoint_with_interrupt() -> Graph:
    @task
    async def double(x: int) -> int:
        called("double")
        return 2 * x

    @entrypoint()
    async def flow(x: int) -> Any:
        called("flow")
        doubled = await double(x)
        return f"{doubled} {interrupt('ok?')}"

    return flow


class Pydantic(BaseModel):
    trail: Annotated[list[str], operator.add] = []
    n: int = 0


@shape({"input": {"trail": ["in"], "n": 1}})
def pydantic_state() -> Graph:
    async def a(state: Pydantic) -> Any:
        called("a")
        return {"trail": ["a"], "n": state.n + 1}

    async def b(state: Pydantic) -> Any:
        called("b")
        return Pydantic(trail=["b"], n=state.n + 1)

    return chain("a", "b", schema=Pydantic, nodes={"a": a, "b": b})


@dataclass
class Data:
    trail: Annotated[list[str], operator.add] = field(default_factory=list[str])
    n: int = 0


@shape({"input": {"trail": ["in"], "n": 1}})
def dataclass_state() -> Graph:
    async def a(state: Data) -> Any:
        called("a")
        return {"trail": ["a"], "n": state.n + 1}

    return chain("a", "b", schema=Data, nodes={"a": a, "b": node("b")})


@shape({"input": {"messages": [{"role": "user", "content": "hi", "id": "m1"}]}})
def messages_state() -> Graph:
    async def reply(state: MessagesState) -> Any:
        called("reply")
        return {"messages": [{"role": "assistant", "content": "hello", "id": "m2"}]}

    return chain("reply", schema=MessagesState, nodes={"reply": reply})


@shape({"input": {"messages": [{"role": "user", "content": "weather", "id": "m1"}]}})
def agent_with_parallel_tools() -> Graph:
    return scripted_agent()


class Talk(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    trail: Annotated[list[str], operator.add]


@shape({"input": {"messages": [{"role": "user", "content": "weather", "id": "m1"}]}})
def agent_as_a_subgraph() -> Graph:
    async def before(state: Talk) -> Any:
        called("before")
        return {"trail": ["before"]}

    return chain("before", "agent", "after", schema=Talk, nodes={
        "before": before, "agent": scripted_agent(), "after": node("after")})  # fmt: skip


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
