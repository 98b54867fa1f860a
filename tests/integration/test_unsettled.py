"""Effects whose outcome nobody knows are found, with why; those that an attempt under way may still tell of are not."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from adapter.effects import effect
from adapter.store import reports, requests
from adapter.store.pool import Pool, create_pool
from tests.stack import Stack, stack


class State(TypedDict, total=False):
    sent: str


class Lost(Exception):
    """The connection broke after the request was sent."""


async def _unsettled(pool: Pool, thread: str) -> list[str]:
    return [row["unsettled"] for row in await reports.effects(pool, thread_id=thread, unsettled=True)]


async def test_unknown_then_asked_then_settled(database_url: str, temporal: str) -> None:
    calls, lost = asyncio.Semaphore(0), asyncio.Event()

    async def send() -> str:
        calls.release()
        await lost.wait()
        raise Lost

    async def mail(state: State) -> Any:
        return {"sent": await effect("mail", send, mode="once")}

    builder = StateGraph(State)
    builder.add_node("mail", mail).add_edge(START, "mail")
    async with stack(database_url, temporal, {"graph": builder.compile()}) as running:
        thread, seen = str(uuid.uuid4()), list[list[str]]()

        async def look(stack: Stack = running) -> None:
            seen.append(await _unsettled(stack.pool, thread))

        first = await running.submit(thread=thread, input={})
        await calls.acquire()
        await look()  # the provider is asked just now
        lost.set()
        assert (await running.ended(first))["status"] == "error"
        await look()
        await running.turn(thread=thread, input=None)
        await look()
        await running.turn(thread=thread, command={"resume": {"outcome": "happened"}})
        await look()

        assert seen == [[], ["unknown"], ["asked"], []]


@pytest.mark.parametrize(
    ("state", "own_turn", "later_turn", "unsettled"),
    [
        ("started", "error", None, "unknown"),
        ("started", "interrupted", None, "unknown"),
        ("started", "success", None, "unknown"),
        ("started", "gone", None, "unknown"),  # rolled back, or deleted
        ("started", "running", None, None),
        ("started", "running since", None, None),  # tried again by Reset, which has not come to it yet
        ("started", "error", "running before the last attempt", None),  # it made that attempt
        ("started", "error", "running since", "unknown"),
        ("started", "error", "pending", "unknown"),
        ("finished", "error", None, None),
        ("failed", "error", None, None),
        ("compensated", "error", None, None),
        ("uncompensated", "error", None, "uncompensated"),
        ("compensating", "running", None, None),
        ("compensating", "error", None, "compensating"),
    ],
)
async def test_each_state(
    database_url: str, state: str, own_turn: str, later_turn: str | None, unsettled: str | None
) -> None:
    async with create_pool(database_url, size=1, name="test") as pool:
        thread = str((await requests.create_thread(pool, str(uuid.uuid4()), {}))["thread_id"])
        own = str(uuid.uuid4())
        async with pool.connection() as conn:
            turn = (
                "INSERT INTO turns.turn (turn_id, thread_id, seq, graph_id, assistant_id, status, request, "
                "request_hash, updated_at) VALUES (%s, %s, %s, 'graph', gen_random_uuid(), %s, '{}', '', "
                "now() + make_interval(secs => %s))"
            )
            if own_turn != "gone":
                await conn.execute(turn, (own, thread, 1, *_since(own_turn)))
            if later_turn is not None:
                await conn.execute(turn, (str(uuid.uuid4()), thread, 2, *_since(later_turn)))
            await conn.execute(
                "INSERT INTO turns.effect (key, thread_id, turn_id, name, node, mode, state) "
                "VALUES ('k', %s, %s, 'charge', 'pay', 'keyed', %s)",
                (thread, own, state),
            )

        assert await _unsettled(pool, thread) == ([] if unsettled is None else [unsettled])
        assert [row["state"] for row in await reports.effects(pool, thread_id=None)] == [state]


def _since(told: str) -> tuple[str, int]:
    """Returns a status, and when the turn got it, in seconds from the effect's last change."""
    return told.split()[0], 1 if told == "running since" else -1
