"""Failures that are odd: a node that ends its process, errors whose text cannot be stored, very long names."""

from __future__ import annotations

import sys
import uuid
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from tests.servers import Postgres
from tests.stack import stack


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


@pytest.mark.parametrize(
    ("node", "error"),
    [
        (exits, {"error": "NodeExited", "message": "the node tried to end its process: SystemExit"}),
        (
            exits_in_a_thread,
            {"error": "NodeExited", "message": "the node tried to end its process: SystemExit"},
        ),
        (raises(ValueError("a\x00b")), {"error": "ValueError", "message": "a\\x00b"}),
        (raises(ValueError("\ud800")), {"error": "ValueError", "message": "\\ud800"}),
        (raises(Unspeakable()), {"error": "Unspeakable", "message": ""}),
    ],
    ids=["exit", "exit in a thread", "nul", "surrogate", "no text"],
)
async def test_the_turn_fails_and_says_why(
    postgres: Postgres, temporal: str, node: Any, error: dict[str, str]
) -> None:
    async with stack(postgres.clone(), temporal, {"graph": one(node)}) as running:
        row = await running.turn(thread=str(uuid.uuid4()), input={"done": False})
        (told,) = [data for name, data in await running.events(str(row["turn_id"])) if name == "error"]

    assert row["status"] == "error"
    assert row["error"] == told == error


async def test_a_very_long_name(postgres: Postgres, temporal: str) -> None:
    async def node(state: State) -> Any:
        return {"done": True}

    async with stack(postgres.clone(), temporal, {"graph": one(node, "n" * 2000)}) as running:
        row = await running.turn(thread=str(uuid.uuid4()), input={"done": False})

    assert row["status"] == "success"
