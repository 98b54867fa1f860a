"""Effects that can be undone, and what was asked of their provider."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from adapter.effects import effect
from adapter.store import requests, stops
from tests.stack import Stack
from workflows import names

CALLS: list[tuple[str, Any, str]] = []


@dataclass
class Unbooking:
    """How the next compensations go.

    Attributes:
        raises: what they raise, one after the other; then they succeed.
        entered: set when one was called.
        go: they wait for it.
    """

    raises: list[BaseException] = field(default_factory=list[BaseException])
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)


UNBOOKING = Unbooking()


def reset_provider() -> None:
    CALLS.clear()
    UNBOOKING.__init__()
    UNBOOKING.go.set()


class State(TypedDict, total=False):
    trail: Annotated[list[str], operator.add]


async def book(what: str, *, idempotency_key: str) -> str:
    CALLS.append(("book", what, idempotency_key))
    return f"receipt for {what}"


async def unbook(receipt: str, *, idempotency_key: str) -> None:
    CALLS.append(("unbook", receipt, idempotency_key))
    UNBOOKING.entered.set()
    await UNBOOKING.go.wait()
    if UNBOOKING.raises:
        raise UNBOOKING.raises.pop(0)


def booking(what: str, **options: Any) -> Any:
    """A node that books something which can be given back."""

    async def node(state: State) -> Any:
        await effect(what, book, what, compensate=unbook, **options)
        return {"trail": [what]}

    return node


def chain(**nodes: Callable[..., Any]) -> Any:
    builder: Any = StateGraph(State)
    previous = START
    for name, node in nodes.items():
        builder.add_node(name, node).add_edge(previous, name)
        previous = name
    return builder


def booked() -> list[str]:
    return [what for call, what, _ in CALLS if call == "book"]


def unbooked() -> list[str]:
    return [what.removeprefix("receipt for ") for call, what, _ in CALLS if call == "unbook"]


def keys_of(what: str) -> int:
    """Counts the keys that something was booked under."""
    return len({key for call, told, key in CALLS if (call, told) == ("book", what)})


async def journal(running: Stack, thread: str) -> dict[str, str]:
    return {row["name"]: row["state"] for row in await requests.list_effects(running.pool, thread)}


async def roll_back(running: Stack, thread: str, turn: str) -> None:
    await running.client.get_workflow_handle(names.workflow_id(thread)).signal(names.ROLL_BACK, turn)
    await stops.notify_cancel(running.pool, turn)


async def tables(running: Stack, thread: str) -> dict[str, list[str]]:
    """Returns everything that LangGraph's tables hold of a thread."""
    found: dict[str, list[str]] = {}
    async with running.pool.connection() as conn:
        for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
            cursor = await conn.execute(f"SELECT * FROM {table} WHERE thread_id = %s", (thread,))  # type: ignore[arg-type]
            found[table] = sorted(map(repr, await cursor.fetchall()))
    return found


async def thread_row(running: Stack, thread: str) -> dict[str, Any]:
    row = await requests.get_thread(running.pool, thread)
    return {name: row[name] for name in ("status", "interrupts", "origin", "metadata", "config")}
