"""Small graphs for the API's tests; gates let a test decide when a node goes on."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    trail: Annotated[list[str], operator.add]
    answer: str
    n: int


def steps(*names: str) -> Any:
    """Nodes one after the other, each noting its name."""
    builder = StateGraph(State)
    before = START
    for name in names:
        builder.add_node(name, _noting(name))
        builder.add_edge(before, name)
        before = name
    builder.add_edge(before, END)
    return builder.compile()


def _noting(name: str) -> Any:
    async def node(state: State) -> Any:
        return {"trail": [name]}

    node.__name__ = name
    return node


def asking() -> Any:
    """A question between two nodes."""

    async def ask(state: State) -> Any:
        return {"answer": interrupt({"question": "Proceed?"}), "trail": ["ask"]}

    builder = StateGraph(State)
    builder.add_node("plan", _noting("plan"))
    builder.add_node("ask", ask)
    builder.add_node("finish", _noting("finish"))
    builder.add_edge(START, "plan")
    builder.add_edge("plan", "ask")
    builder.add_edge("ask", "finish")
    return builder.compile()


def failing() -> Any:
    """A node that raises until `answer` is given."""

    async def plan(state: State) -> Any:
        if not state.get("answer"):
            raise ValueError("boom in plan")
        return {"trail": ["plan"]}

    builder = StateGraph(State)
    builder.add_node("plan", plan)
    builder.add_edge(START, "plan")
    return builder.compile()


class Held:
    """A graph whose node waits until the test lets it go; it ticks while it waits."""

    def __init__(self, *, slow_to_stop: float = 0) -> None:
        self.slow_to_stop = slow_to_stop
        self.reset()

    def reset(self) -> None:
        """Makes it as new; nothing may run of it."""
        self.go = asyncio.Event()
        self.started = asyncio.Event()
        self.stopped = asyncio.Event()
        self.calls = 0

    def graph(self) -> Any:
        async def hold(state: State) -> Any:
            self.calls += 1
            writer = get_stream_writer()
            writer({"started": self.calls})
            self.started.set()
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                await asyncio.sleep(self.slow_to_stop)
                self.stopped.set()
                raise
            return {"trail": ["hold"], "n": self.calls}

        builder = StateGraph(State)
        builder.add_node("hold", hold)
        builder.add_node("after", _noting("after"))
        builder.add_edge(START, "hold")
        builder.add_edge("hold", "after")
        return builder.compile()


class Ticking:
    """A graph that writes a custom event each time the test asks for one."""

    def __init__(self) -> None:
        self.ticks: asyncio.Queue[int | None] = asyncio.Queue()

    def graph(self) -> Any:
        async def tick(state: State) -> Any:
            writer = get_stream_writer()
            while (number := await self.ticks.get()) is not None:
                writer({"tick": number})
            return {"trail": ["tick"]}

        builder = StateGraph(State)
        builder.add_node("tick", tick)
        builder.add_edge(START, "tick")
        return builder.compile()


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def chatting() -> Any:
    """A model that answers with a few words, token by token."""

    async def talk(state: Chat) -> Any:
        model = GenericFakeChatModel(messages=iter([AIMessage("Hello there friend")]))
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder = StateGraph(Chat)
    builder.add_node("talk", talk)
    builder.add_edge(START, "talk")
    return builder.compile()


def nested() -> Any:
    """A question inside of a subgraph."""

    async def ask(state: State) -> Any:
        return {"answer": interrupt({"ask": "inside"}), "trail": ["inner"]}

    inner = StateGraph(State)
    inner.add_node("sub_ask", ask)
    inner.add_edge(START, "sub_ask")
    builder = StateGraph(State)
    builder.add_node("child", inner.compile())
    builder.add_node("finish", _noting("finish"))
    builder.add_edge(START, "child")
    builder.add_edge("child", "finish")
    return builder.compile()
