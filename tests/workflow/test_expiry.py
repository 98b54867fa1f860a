"""Threads past their lifetime end by a Temporal Schedule: deleted, or reduced to their latest checkpoint."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator

import pytest
from langgraph.store.postgres.aio import AsyncPostgresStore
from temporalio.testing import ActivityEnvironment

from activities.expiry import ExpiryActivities
from adapter.errors import NotFound
from adapter.store import requests
from adapter.store.pool import Pool, create_pool, fetch_one
from adapter.store.requests import Lifetime
from tests import servers
from tests.graphs.shapes import linear
from tests.graphs.slow import Switch, failing, waiting
from tests.rows import record
from tests.stack import Stack, stack
from tests.workflow.resets import closed, reset
from workflows import names

DELETE = Lifetime(60, "delete")
REDUCE = Lifetime(60, "keep_latest")


async def _age(pool: Pool, thread: str, minutes: float) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "UPDATE turns.thread SET updated_at = now() - make_interval(secs => 60 * %s) WHERE thread_id = %s",
            (minutes, thread),
        )


async def _thread(pool: Pool, lifetime: Lifetime | None, *, age: float) -> str:
    thread = str((await requests.create_thread(pool, str(uuid.uuid4()), {}, lifetime=lifetime))["thread_id"])
    await _age(pool, thread, age)
    return thread


async def _exists(pool: Pool, thread: str) -> bool:
    try:
        await requests.get_thread(pool, thread)
    except NotFound:
        return False
    return True


async def _checkpoints(pool: Pool, thread: str) -> int:
    async with pool.connection() as conn:
        cursor = await conn.execute("SELECT count(*) AS n FROM checkpoints WHERE thread_id = %s", (thread,))
        row = await cursor.fetchone()
    assert row is not None
    return int(row["n"])


async def _expire(pool: Pool) -> int:
    return await ActivityEnvironment().run(ExpiryActivities(pool, threads=2).expire)


@pytest.fixture
def own_temporal() -> Iterator[str]:
    """A server of its own: the schedule belongs to the first worker that a server sees."""
    with servers.temporal() as address:
        yield address


async def test_the_schedule_does_it(database_url: str, own_temporal: str) -> None:
    async with stack(database_url, own_temporal, {"graph": linear()}) as running:
        old, young = [await _thread(running.pool, DELETE, age=0) for _ in range(2)]
        reduced = await _thread(running.pool, REDUCE, age=0)
        for thread in (old, young, reduced):
            await running.turn(thread=thread, input={"trail": []})
        before = await running.state("graph", reduced)
        assert await _checkpoints(running.pool, reduced) > 1
        for thread, age in ((old, 61), (young, 59), (reduced, 61)):
            await _age(running.pool, thread, age)
        await running.client.get_schedule_handle(names.EXPIRE_SCHEDULE).trigger()
        async with asyncio.timeout(30):
            while await _exists(running.pool, old) or await _checkpoints(running.pool, reduced) > 1:
                await asyncio.sleep(0.02)

        assert await _checkpoints(running.pool, old) == 0
        assert await _checkpoints(running.pool, young) > 1
        assert (await running.state("graph", reduced)).values == before.values


async def test_what_is_due_and_nothing_else(database_url: str) -> None:
    async with create_pool(database_url, size=2, name="test") as pool:
        due = [await _thread(pool, DELETE, age=61 + n) for n in range(5)]
        kept = [
            await _thread(pool, DELETE, age=59),
            await _thread(pool, Lifetime(120, "delete"), age=61),
            await _thread(pool, None, age=1_000_000),
        ]
        busy = await _thread(pool, DELETE, age=0)
        await record(pool, busy)
        await _age(pool, busy, 61)
        assert await _expire(pool) == 5
        assert [await _exists(pool, thread) for thread in due] == [False] * 5
        assert [await _exists(pool, thread) for thread in [*kept, busy]] == [True] * 4
        assert await _expire(pool) == 0


async def test_reduced_again_after_its_next_change(database_url: str, temporal: str) -> None:
    async with stack(database_url, temporal, {"graph": linear()}) as running:
        thread = await _thread(running.pool, REDUCE, age=0)
        for _ in range(2):
            await running.turn(thread=thread, input={"trail": []})
            assert await _checkpoints(running.pool, thread) > 1
            await _age(running.pool, thread, 61)
            assert await _expire(running.pool) == 1
            assert await _checkpoints(running.pool, thread) == 1
            assert await _expire(running.pool) == 0
            async with running.pool.connection() as conn:  # as a day later
                await conn.execute("UPDATE turns.thread SET ttl_pruned_at = ttl_pruned_at - interval '1 day'")


async def test_a_turn_whose_checkpoints_are_gone_is_not_done_again(database_url: str, temporal: str) -> None:
    switch = Switch(failures=1)
    switch.go.set()
    async with stack(database_url, temporal, {"graph": failing(switch)}) as running:
        thread = await _thread(running.pool, REDUCE, age=0)
        turn = await running.submit(thread=thread, input={"trail": []})
        await running.ended(turn)
        await closed(running, thread)
        await _age(running.pool, thread, 61)
        assert await _expire(running.pool) == 1
        await reset(running, thread)
        await closed(running, thread)
        row = await fetch_one(running.pool, "get_turn", turn_id=turn)
        assert row is not None and row["status"] == "error"
        # The state is still there to go on with.
        again = await running.turn(thread=thread, input=None)
        assert again["status"] == "success"
        assert (await running.state("graph", thread)).values == {"trail": ["first", "pay", "last"]}


async def test_a_busy_thread_is_left_alone(database_url: str, temporal: str) -> None:
    switch = Switch()
    async with stack(database_url, temporal, {"graph": waiting(switch)}) as running:
        threads = [await _thread(running.pool, lifetime, age=0) for lifetime in (DELETE, REDUCE)]
        turns = [await running.submit(thread=thread, input={"trail": []}) for thread in threads]
        await switch.started.wait()
        for thread in threads:
            await _age(running.pool, thread, 61)
            # Also for one that turned busy after it was found due.
            await _set_status(running, thread, "idle")
        assert await _expire(running.pool) == 0
        switch.go.set()
        assert [(await running.ended(turn))["status"] for turn in turns] == ["success", "success"]


async def _set_status(running: Stack, thread: str, status: str) -> None:
    async with running.pool.connection() as conn:
        await conn.execute("UPDATE turns.thread SET status = %s WHERE thread_id = %s", (status, thread))


async def test_items_of_the_store(database_url: str) -> None:
    async with create_pool(database_url, size=2, name="test") as pool:
        store = AsyncPostgresStore(pool)  # type: ignore[arg-type]
        for key, minutes in (("old", 1), ("young", 5), ("forever", None)):
            await store.aput(("a",), key, {}, ttl=minutes)
        async with pool.connection() as conn:
            await conn.execute("UPDATE store SET expires_at = expires_at - interval '2 minutes'")
        await _expire(pool)
        assert sorted(item.key for item in await store.asearch(("a",))) == ["forever", "young"]
