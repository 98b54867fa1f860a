"""Failures that are odd: a node that ends its process, errors whose text cannot be stored, very long names."""

from __future__ import annotations

import sys
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from tests.servers import Postgres
from tests.stack import Stack, stack


class State(TypedDict, total=False):
    done: bool


def one(node: Any, name: str = "node") -> Any:
    builder: Any = StateGraph(State)
    builder.add_node(name, node).add_edge(START, name)
    return builder.compile()


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


async def exits(state: State) -> Any:
    sys.exit(3)


def exits_in_a_thread(state: State) -> Any:
    sys.exit(3)


def raises(error: Exception) -> Any:
    async def node(state: State) -> Any:
        raise error

    return node


async def ends(state: State) -> Any:
    return {"done": True}


EXITED = {"error": "NodeExited", "message": "the node tried to end its process: SystemExit"}
FAILURES: dict[str, tuple[Any, dict[str, str]]] = {
    "exit": (exits, EXITED),
    "exit in a thread": (exits_in_a_thread, EXITED),
    "nul": (raises(ValueError("a\x00b")), {"error": "ValueError", "message": "a\\x00b"}),
    "surrogate": (raises(ValueError("\ud800")), {"error": "ValueError", "message": "\\ud800"}),
    "no text": (raises(Unspeakable()), {"error": "Unspeakable", "message": ""}),
}


@pytest_asyncio.fixture(scope="module")
async def running(postgres: Postgres, temporal: str) -> AsyncIterator[Stack]:
    graphs = {name: one(node) for name, (node, _) in FAILURES.items()}
    async with stack(postgres.clone(), temporal, {**graphs, "long": one(ends, "n" * 2000)}) as it:
        yield it


@pytest.mark.parametrize("failure", FAILURES)
async def test_the_turn_fails_and_says_why(running: Stack, failure: str) -> None:
    row = await running.turn(failure, thread=str(uuid.uuid4()), input={"done": False})
    (told,) = [data for name, data in await running.events(str(row["turn_id"])) if name == "error"]

    assert row["status"] == "error"
    assert row["error"] == told == FAILURES[failure][1]


async def test_a_very_long_name(running: Stack) -> None:
    row = await running.turn("long", thread=str(uuid.uuid4()), input={"done": False})

    assert row["status"] == "success"
