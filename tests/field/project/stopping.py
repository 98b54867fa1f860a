"""Graphs of one slow node each, for tests that stop the worker under it: node, then an inline `last`.

The node tells the test what happens through files in `FIELD_FOLDER`; most run until the test lets them go on.
"""

from __future__ import annotations

import asyncio
import operator
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from adapter.effects import effect, effect_sync
from deploy.examples.booking import client


class State(TypedDict, total=False):
    trail: Annotated[list[str], operator.add]


def _file(name: str) -> Path:
    return Path(os.environ["FIELD_FOLDER"]) / name


def tell(what: str) -> None:
    with _file("told").open("a") as told:
        told.write(f"{what} {os.getpid()}\n")


def told(what: str) -> bool:
    file = _file("told")
    return file.exists() and any(line.startswith(f"{what} ") for line in file.read_text().splitlines())


def may_go_on() -> bool:
    return _file("go").exists()


async def patient(state: State) -> Any:
    """Waits as a cooperative node does."""
    tell("begun")
    try:
        while not may_go_on():
            await asyncio.sleep(0.01)
    finally:
        tell("left")
    return {"trail": ["patient"]}


def stubborn(state: State) -> Any:
    """Lets nothing stop it."""
    tell("begun")
    while not may_go_on():
        try:
            time.sleep(0.01)
        except BaseException:
            tell("swallowed")
    return {"trail": ["stubborn"]}


async def blocking(state: State) -> Any:
    """Keeps its event loop, the first time; in a task of its own, as a tool does."""
    first = not _file("told").exists()
    tell("begun")
    await asyncio.gather(_blocks_if(first))
    tell("goes on")
    receipt = await effect("charge", client.charge, booking_id="b-1", amount=80)
    return {"trail": [receipt["id"]]}


async def _blocks_if(first: bool) -> None:
    while first and not may_go_on():
        time.sleep(0.01)  # noqa: ASYNC251 - that is the point


async def charging(state: State) -> Any:
    """Charges, then waits."""
    tell("begun")
    receipt = await effect("charge", client.charge, booking_id="b-1", amount=80)
    tell("charged")
    return {"trail": [receipt["id"]]}


def charging_sync(state: State) -> Any:
    """As `charging`, in a thread."""
    tell("begun")

    def charge(*, idempotency_key: str) -> client.Receipt:
        return asyncio.run(client.charge(booking_id="b-1", amount=80, idempotency_key=idempotency_key))

    receipt = effect_sync("charge", charge)
    tell("charged")
    return {"trail": [receipt["id"]]}


async def quick(state: State) -> Any:
    """Does next to nothing."""
    return {"trail": ["quick"]}


async def _last(state: State) -> Any:
    return {"trail": ["last"]}


def _graph(node: Callable[..., Any]) -> Any:
    builder: Any = StateGraph(State)
    builder.add_node("node", node).add_node("last", _last, metadata={"durable": "inline"})
    builder.add_edge(START, "node").add_edge("node", "last")
    return builder.compile()


patient_graph = _graph(patient)
stubborn_graph = _graph(stubborn)
blocking_graph = _graph(blocking)
charging_graph = _graph(charging)
charging_sync_graph = _graph(charging_sync)
quick_graph = _graph(quick)
