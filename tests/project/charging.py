"""Graphs that charge, for tests that kill the worker around it: the provider's ledger tells what ran."""

from __future__ import annotations

import operator
import os
import signal
import uuid
from pathlib import Path
from typing import Annotated, Any

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt
from typing_extensions import TypedDict

from adapter.effects import effect
from deploy.examples.booking import client


class State(TypedDict, total=False):
    n: int
    trail: Annotated[list[str], operator.add]


async def _charge(booking: str, amount: int = 1) -> str:
    return (await effect("charge", client.charge, booking_id=booking, amount=amount))["id"]


def _one(node: Any) -> Any:
    builder: Any = StateGraph(State)
    builder.add_node("node", node).add_edge(START, "node")
    return builder.compile()


# ---------------------------------------------------------------- fan-out


async def _work(state: State) -> Any:
    await _charge(f"b{state.get('n')}")
    return {"trail": [f"work{state.get('n')}"]}


async def _sum(state: State) -> Any:
    return {"trail": ["sum"]}


def _spread(state: State) -> list[Send]:
    return [Send("work", {"n": n}) for n in range(state.get("n", 0))]


_fan: Any = StateGraph(State)
_fan.add_node("work", _work).add_node("sum", _sum)
_fan.add_conditional_edges(START, _spread, ["work"]).add_edge("work", "sum")
wide = _fan.compile()


# ---------------------------------------------------------------- a model that never answers the same


async def _said() -> str:
    """Asks the model; notes what it said where a test finds it."""
    model = GenericFakeChatModel(messages=iter([AIMessage(str(uuid.uuid4().int % 1_000_000 + 1))]))
    said = (await model.ainvoke("How much?")).text
    with (Path(os.environ["TURNS_DATA_DIR"]) / "said").open("a") as file:
        file.write(f"{said}\n")
    return said


async def _pays_what_was_agreed(state: State) -> Any:
    said = await _said()
    return {"trail": [said, await _charge("b", state.get("n", 0))]}


async def _pays_what_the_model_says(state: State) -> Any:
    said = await _said()
    return {"trail": [said, await _charge("b", int(said))]}


pays_what_was_agreed = _one(_pays_what_was_agreed)
pays_what_the_model_says = _one(_pays_what_the_model_says)


# ---------------------------------------------------------------- questions between charges


async def _asks(state: State) -> Any:
    first = await _charge("first")
    one = interrupt("one?")
    second = await _charge("second")
    two = interrupt("two?")
    return {"trail": [first, one, second, two, await _charge("third")]}


asks_between_charges = _one(_asks)


# ---------------------------------------------------------------- a node that takes its worker along


async def _dies(state: State) -> Any:
    if state.get("n"):
        os.kill(os.getpid(), signal.SIGKILL)
    return {"trail": ["lived"]}


deadly = _one(_dies)
