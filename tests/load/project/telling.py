"""A graph that tells of every kind of event: its models speak letter by letter, one of them in a subgraph."""

from __future__ import annotations

import asyncio
import operator
from pathlib import Path
from typing import Annotated, Any

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AnyMessage
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

LETTER_SECONDS = 0.02
TRAIL = ["plan", "write", "check", "finish"]


class State(TypedDict, total=False):
    """What it keeps.

    Attributes:
        mark: what the models speak of.
        gate: a file that the first node waits for; none, and it does not wait.
        messages: what the models said.
        trail: the nodes that ran.
    """

    mark: str
    gate: str
    messages: Annotated[list[AnyMessage], add_messages]
    trail: Annotated[list[str], operator.add]


class Inner(TypedDict, total=False):
    """What the subgraph keeps; its trail is only what it adds itself."""

    mark: str
    messages: Annotated[list[AnyMessage], add_messages]
    trail: list[str]


def written(mark: str) -> str:
    """Returns what the first model says."""
    return f"This is all that I know of {mark}."


def checked(mark: str) -> str:
    """Returns what the model of the subgraph says."""
    return f"I have looked at {mark}, all is well."


async def plan(state: State) -> Any:
    get_stream_writer()({"planned": state.get("mark")})
    if gate := state.get("gate"):
        while not Path(gate).exists():
            await asyncio.sleep(0.25)
    return {"trail": ["plan"]}


async def write(state: State) -> Any:
    return {"messages": [await _says(written(state.get("mark", "")), state)], "trail": ["write"]}


async def check(state: Inner) -> Any:
    get_stream_writer()({"checking": state.get("mark")})
    return {"messages": [await _says(checked(state.get("mark", "")), state)]}


async def sign(state: Inner) -> Any:
    return {"trail": ["check"]}


async def finish(state: State) -> Any:
    return {"trail": ["finish"]}


async def _says(text: str, state: State | Inner) -> Any:
    model = FakeListChatModel(responses=[text], sleep=LETTER_SECONDS)
    return await model.ainvoke(state.get("messages", []))


def _checking() -> Any:
    builder: Any = StateGraph(Inner)
    builder.add_node("look", check).add_node("sign", sign)
    builder.add_edge(START, "look").add_edge("look", "sign")
    return builder.compile()


def _graph() -> Any:
    builder: Any = StateGraph(State)
    builder.add_node("plan", plan).add_node("write", write).add_node("check", _checking())
    builder.add_node("finish", finish)
    builder.add_edge(START, "plan").add_edge("plan", "write").add_edge("write", "check")
    builder.add_edge("check", "finish")
    return builder.compile()


graph = _graph()
