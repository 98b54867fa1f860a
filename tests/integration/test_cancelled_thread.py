"""A cancel reaches the threads of synchronous nodes: the turn is stopped when they have ended."""

from __future__ import annotations

import asyncio
import operator
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Send, TimeoutPolicy
from typing_extensions import TypedDict

from adapter.effects import effect_sync
from adapter.store import requests, stops
from tests.servers import Postgres
from tests.stack import Stack, stack
from workflows import names


class State(TypedDict, total=False):
    trail: Annotated[list[str], operator.add]


@dataclass
class Watched:
    """What a node in a thread tells its test."""

    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    go: threading.Event = field(default_factory=threading.Event)
    told: list[str] = field(default_factory=list[str])

    def works(self, name: str) -> Any:
        """Runs until it may go on, or until it is cancelled."""
        try:
            self.begun.release()
            while not self.go.is_set():
                time.sleep(0.005)
            self.told.append(f"{name} goes on")
        except asyncio.CancelledError:
            self.told.append(f"{name} is cancelled")
            raise
        finally:
            self.told.append(f"{name} cleans up")
        return {"trail": [name]}

    async def has_begun(self, times: int = 1) -> None:
        for _ in range(times):
            assert await asyncio.get_running_loop().run_in_executor(None, self.begun.acquire, True, 20)


def _graph(*nodes: Callable[..., Any], inline: bool = False) -> Any:
    builder: Any = StateGraph(State)
    for node in nodes:
        builder.add_node(node.__name__, node, metadata={"durable": "inline"} if inline else None)
        builder.add_edge(START, node.__name__)
    return builder


async def _cancel(running: Stack, thread: str, turn: str) -> str:
    await running.client.get_workflow_handle(names.workflow_id(thread)).signal(names.CANCEL, turn)
    await stops.notify_cancel(running.pool, turn)
    return str((await running.ended(turn))["status"])


def _one(watched: Watched) -> Any:
    def one(state: State) -> Any:
        return watched.works("one")

    return _graph(one).compile()


def _siblings(watched: Watched) -> Any:
    def one(state: State) -> Any:
        return watched.works("one")

    def two(state: State) -> Any:
        return watched.works("two")

    return _graph(one, two).compile()


def _inline(watched: Watched) -> Any:
    def one(state: State) -> Any:
        return watched.works("one")

    return _graph(one, inline=True).compile()


def _inside(watched: Watched) -> Any:
    return _graph().add_node("inside", _siblings(watched)).add_edge(START, "inside").compile()


def _as_one_piece(watched: Watched) -> Any:
    def one(state: State) -> Any:
        return watched.works("one")

    def two(state: State) -> Any:
        return watched.works("two")

    return (
        _graph()
        .add_node("inside", _graph(one, two).compile(checkpointer=False))
        .add_edge(START, "inside")
        .compile()
    )


def _sent(watched: Watched) -> Any:
    def one(name: str) -> Any:
        return watched.works(name)

    def send(state: State) -> Any:
        return [Send("one", "one"), Send("one", "two")]

    builder: Any = StateGraph(State)
    return builder.add_node("one", one).add_conditional_edges(START, send, ["one"]).compile()


def _in_async(watched: Watched) -> Any:
    async def one(state: State) -> Any:
        return await asyncio.to_thread(watched.works, "one")

    builder: Any = StateGraph(State)
    builder.add_node("one", one, timeout=TimeoutPolicy(run_timeout=60))
    return builder.add_edge(START, "one").compile()


@pytest.mark.parametrize(
    ("graph", "threads"),
    [(_one, 1), (_siblings, 2), (_inline, 1), (_inside, 2), (_as_one_piece, 2), (_sent, 2), (_in_async, 1)],
)
async def test_the_turn_has_stopped_when_its_threads_have_ended(
    postgres: Postgres, temporal: str, graph: Callable[[Watched], Any], threads: int
) -> None:
    watched = Watched()
    async with stack(postgres.clone(), temporal, {"graph": graph(watched)}) as running:
        thread = str(uuid.uuid4())
        turn = await running.submit(thread=thread, input={"trail": []})
        await watched.has_begun(threads)

        assert await _cancel(running, thread, turn) == "interrupted"
        told = sorted(watched.told)
        watched.go.set()

        names_of_threads = ("one", "two")[:threads]
        assert told == sorted(
            f"{n} {what}" for n in names_of_threads for what in ("is cancelled", "cleans up")
        )
        assert (await running.turn(thread=thread, input={"trail": []}))["status"] == "success"


async def test_an_effect_under_way_is_let_end_and_journaled(postgres: Postgres, temporal: str) -> None:
    watched, answer = Watched(), threading.Event()

    def charge(*, idempotency_key: str) -> str:
        watched.begun.release()
        while not answer.is_set():
            time.sleep(0.005)
        watched.told.append("charged")
        return "receipt"

    def pay(state: State) -> Any:
        try:
            effect_sync("charge", charge)
            watched.told.append("goes on")
        finally:
            watched.told.append("cleans up")

    async with stack(postgres.clone(), temporal, {"graph": _graph(pay).compile()}) as running:
        thread = str(uuid.uuid4())
        turn = await running.submit(thread=thread, input={"trail": []})
        await watched.has_begun()
        await running.client.get_workflow_handle(names.workflow_id(thread)).signal(names.CANCEL, turn)
        await stops.notify_cancel(running.pool, turn)
        await asyncio.sleep(0.5)
        assert watched.told == []
        answer.set()
        stopped = await running.ended(turn)
        (journaled,) = await requests.list_effects(running.pool, thread)

        assert stopped["status"] == "interrupted"
        assert watched.told == ["charged", "cleans up"]
        assert (journaled["state"], journaled["attempts"]) == ("finished", 1)
