"""The graphs that the protocol is shown with; each tells of every kind of event that it can."""

from __future__ import annotations

import operator
from typing import Annotated, Any

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt
from typing_extensions import TypedDict

from tests.api.graphs import Held


class State(TypedDict, total=False):
    """What the root graphs keep.

    Attributes:
        messages: the conversation.
        trail: the nodes that ran.
        mode: what shall happen: "fail", "ask", or nothing in particular.
        answer: to the question of "ask".
    """

    messages: Annotated[list[AnyMessage], add_messages]
    trail: Annotated[list[str], operator.add]
    mode: str
    answer: str


class Inner(TypedDict, total=False):
    """What the subgraphs keep: a conversation that they share, and a note of their own."""

    messages: Annotated[list[AnyMessage], add_messages]
    note: str


def _says(text: str) -> GenericFakeChatModel:
    return GenericFakeChatModel(messages=iter([AIMessage(text)]))


async def _plan(state: State) -> Any:
    get_stream_writer()({"step": "plan", "pct": 10})
    if state.get("mode") == "fail":
        raise ValueError("boom in plan")
    return {"trail": ["plan"]}


async def _finish(state: State) -> Any:
    return {"trail": ["finish"]}


def agent() -> Any:
    """A custom event, a model, perhaps a question, an end."""

    async def call_model(state: State) -> Any:
        answered = await _says("Hello you").ainvoke(state.get("messages", []))
        return {"messages": [answered], "trail": ["call_model"]}

    async def human(state: State) -> Any:
        if state.get("mode") != "ask":
            return {"trail": ["human"]}
        return {"answer": interrupt({"ask": "Go on?"}), "trail": ["human"]}

    builder = StateGraph(State)
    builder.add_node("plan", _plan)
    builder.add_node("call_model", call_model)
    builder.add_node("human", human)
    builder.add_node("finish", _finish)
    builder.add_edge(START, "plan")
    builder.add_edge("plan", "call_model")
    builder.add_edge("call_model", "human")
    builder.add_edge("human", "finish")
    return builder.compile()


def parent() -> Any:
    """A subgraph with a custom event and a model of its own, between two nodes."""

    async def sub_a(state: Inner) -> Any:
        get_stream_writer()({"from": "sub_a"})
        return {"messages": [await _says("sub says hi").ainvoke(state.get("messages", []))], "note": "a"}

    async def sub_b(state: Inner) -> Any:
        return {"note": "b"}

    inner = StateGraph(Inner)
    inner.add_node("sub_a", sub_a)
    inner.add_node("sub_b", sub_b)
    inner.add_edge(START, "sub_a")
    inner.add_edge("sub_a", "sub_b")
    builder = StateGraph(State)
    builder.add_node("plan", _plan)
    builder.add_node("child", inner.compile())
    builder.add_node("finish", _finish)
    builder.add_edge(START, "plan")
    builder.add_edge("plan", "child")
    builder.add_edge("child", "finish")
    return builder.compile()


def tools() -> Any:
    """A message that no model streamed, a tool's answer, and a model's."""

    async def ask(state: State) -> Any:
        if any(isinstance(message, ToolMessage) for message in state.get("messages", [])):
            return {"messages": [await _says("It is sunny").ainvoke(state.get("messages", []))]}
        call = {"name": "get_weather", "args": {"city": "Paris"}, "id": "call_1"}
        return {"messages": [AIMessage("", tool_calls=[call])]}

    async def use(state: State) -> Any:
        get_stream_writer()({"tool": "get_weather", "progress": 0.5})
        return {"messages": [ToolMessage("sunny in Paris", tool_call_id="call_1", name="get_weather")]}

    def which(state: State) -> str:
        return "tools" if state.get("messages", [])[-1].type == "ai" and _calls(state) else "__end__"

    builder = StateGraph(State)
    builder.add_node("agent", ask)
    builder.add_node("tools", use)
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", which, ["tools", "__end__"])
    builder.add_edge("tools", "agent")
    return builder.compile()


def _calls(state: State) -> bool:
    last = state.get("messages", [])[-1]
    return isinstance(last, AIMessage) and bool(last.tool_calls)


def nested() -> Any:
    """A question inside of a subgraph."""

    async def sub_ask(state: Inner) -> Any:
        return {"note": interrupt({"ask": "inside sub"})}

    inner = StateGraph(Inner)
    inner.add_node("sub_ask", sub_ask)
    inner.add_edge(START, "sub_ask")
    builder = StateGraph(State)
    builder.add_node("child", inner.compile())
    builder.add_node("finish", _finish)
    builder.add_edge(START, "child")
    builder.add_edge("child", "finish")
    return builder.compile()


def parallel() -> Any:
    """Two questions at the same time."""

    def asking(name: str, question: str) -> Any:
        async def ask(state: State) -> Any:
            return {"trail": [f"{name}: {interrupt(question)}"]}

        return ask

    builder = StateGraph(State)
    builder.add_node("one", asking("one", "q1"))
    builder.add_node("two", asking("two", "q2"))
    builder.add_edge(START, "one")
    builder.add_edge(START, "two")
    return builder.compile()


# Runs until a test lets it go.
HELD = Held()

GRAPHS: dict[str, Any] = {
    "agent": agent(),
    "parent": parent(),
    "tools": tools(),
    "nested": nested(),
    "par": parallel(),
    "held": HELD.graph(),
}
