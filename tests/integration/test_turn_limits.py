"""What a thread refuses and whether it is busy is decided under its lock, so that what comes at the same moment as
something else has one answer (I3)."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from adapter.errors import Conflict, TooMany
from adapter.store import requests, stops, turns
from adapter.store.pool import Pool, create_pool, fetch_all
from adapter.store.requests import NewTurn, Recorded


@pytest_asyncio.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    async with create_pool(database_url, size=10, name="test") as it:
        yield it


async def _thread(pool: Pool) -> str:
    return str((await requests.create_thread(pool, str(uuid.uuid4()), {}))["thread_id"])


def _turn(
    thread: str, *, key: str | None = None, strategy: str = "enqueue", limit: int | None = None
) -> NewTurn:
    return NewTurn(
        thread,
        "graph",
        str(uuid.uuid4()),
        {},
        {},
        {},
        strategy,
        key,
        strategy == "reject",
        queued_turns=limit,
    )


async def _at_once(database_url: str, pool: Pool, thread: str, *asked: Awaitable[Any]) -> list[object]:
    """Lets all of them wait for the thread's lock, in this order, before any gets it."""
    async with await psycopg.AsyncConnection.connect(database_url) as holder:
        await holder.execute("SELECT 1 FROM turns.thread WHERE thread_id = %s FOR UPDATE", (thread,))
        asking: list[asyncio.Future[Any]] = []
        for one in asked:
            asking.append(asyncio.ensure_future(one))
            await _waiting(database_url, len(asking))
        await holder.commit()
        return [*await asyncio.gather(*asking, return_exceptions=True)]


async def _waiting(database_url: str, count: int) -> None:
    """Waits until so many connections wait for a lock."""
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as watching:
        while True:
            cursor = await watching.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                "AND wait_event_type = 'Lock'"
            )
            if await cursor.fetchone() == (count,):
                return


async def test_a_thread_has_no_more_turns_waiting_than_the_limit(database_url: str, pool: Pool) -> None:
    thread = await _thread(pool)
    asked = [requests.record_turn(pool, _turn(thread, limit=2)) for _ in range(6)]
    answers = await _at_once(database_url, pool, thread, *asked)

    assert Counter(type(answer) for answer in answers) == {Recorded: 3, TooMany: 3}
    rows = await fetch_all(pool, "open_turns", thread_id=thread)
    assert [row["seq"] for row in rows] == [1, 2, 3]
    assert (await requests.get_thread(pool, thread))["last_seq"] == 3


async def test_a_busy_thread_refuses_all_but_one(database_url: str, pool: Pool) -> None:
    thread = await _thread(pool)
    asked = [requests.record_turn(pool, _turn(thread, strategy="reject")) for _ in range(4)]
    answers = await _at_once(database_url, pool, thread, *asked)

    assert Counter(type(answer) for answer in answers) == {Recorded: 1, Conflict: 3}


async def test_a_repeated_request_is_one_turn(database_url: str, pool: Pool) -> None:
    thread = await _thread(pool)
    asked = [requests.record_turn(pool, _turn(thread, key="k")) for _ in range(4)]
    answers = await _at_once(database_url, pool, thread, *asked)

    assert sorted(a.new for a in answers if isinstance(a, Recorded)) == [False, False, False, True]
    assert (await requests.get_thread(pool, thread))["last_seq"] == 1


async def test_a_full_thread_still_knows_a_request_it_took(pool: Pool) -> None:
    thread = await _thread(pool)
    first = await requests.record_turn(pool, _turn(thread, key="k", limit=1))
    await requests.record_turn(pool, _turn(thread, limit=1))
    again = await requests.record_turn(pool, _turn(thread, key="k", limit=1))
    with pytest.raises(TooMany, match="1 turn waiting"):
        await requests.record_turn(pool, _turn(thread, limit=1))

    assert (again.row["turn_id"], again.new) == (first.row["turn_id"], False)


async def test_a_turn_that_clears_the_queue_is_not_counted(pool: Pool) -> None:
    thread = await _thread(pool)
    for _ in range(2):
        await requests.record_turn(pool, _turn(thread, limit=1))

    assert (await requests.record_turn(pool, _turn(thread, strategy="interrupt"))).new


async def test_a_thread_stays_busy_when_a_turn_ends_while_the_next_is_recorded(
    database_url: str, pool: Pool
) -> None:
    async def ends(turn_id: str) -> None:
        async with pool.connection() as conn, conn.transaction():
            await turns.finish(conn, turn_id, status="success", thread_status="idle")

    thread = await _thread(pool)
    first = str((await requests.record_turn(pool, _turn(thread))).row["turn_id"])
    await _at_once(database_url, pool, thread, requests.record_turn(pool, _turn(thread)), ends(first))

    assert (await requests.get_thread(pool, thread))["status"] == "busy"


async def test_a_thread_stays_busy_when_a_turn_is_cancelled_while_the_next_is_recorded(
    database_url: str, pool: Pool
) -> None:
    thread = await _thread(pool)
    first = str((await requests.record_turn(pool, _turn(thread))).row["turn_id"])
    cancelled = stops.cancel_pending(pool, first)
    await _at_once(database_url, pool, thread, requests.record_turn(pool, _turn(thread)), cancelled)

    assert (await requests.get_thread(pool, thread))["status"] == "busy"
