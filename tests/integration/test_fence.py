"""Only the newest claim of a scope may write, and a claim of a wider scope ends the narrower ones (I5)."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from langchain_core.runnables import RunnableConfig

from adapter.errors import StaleAttempt
from adapter.saver import FencedSaver
from adapter.store import turns
from adapter.store.claims import Claim
from adapter.store.event_log import Event
from adapter.store.pool import Connection, Pool, create_pool, fetch_all
from adapter.writer import FencedWriter
from tests.rows import claim, record


@pytest_asyncio.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    async with create_pool(database_url, size=8, name="test") as it:
        yield it


@pytest_asyncio.fixture
async def turn(pool: Pool) -> tuple[str, str]:
    return await record(pool)


async def write(pool: Pool, it: Claim, turn_id: str) -> None:
    async with FencedWriter(pool, it, turn_id, token_delay=0) as writer:
        writer.emit(Event("custom", "1"))


async def test_a_newer_attempt_ends_the_older_one(pool: Pool, turn: tuple[str, str]) -> None:
    thread, turn_id = turn
    old = await claim(pool, thread, "", 10, 1)
    new = await claim(pool, thread, "", 10, 2)

    with pytest.raises(StaleAttempt, match=r"10/2, not by this attempt 10/1"):
        await write(pool, old, turn_id)
    await write(pool, new, turn_id)


async def test_an_older_attempt_cannot_claim_again(pool: Pool, turn: tuple[str, str]) -> None:
    thread, _ = turn
    await claim(pool, thread, "", 10, 2)

    with pytest.raises(StaleAttempt, match=r"attempt 10/1 may not claim .* 10/2"):
        await claim(pool, thread, "", 10, 1)


async def test_the_same_attempt_may_claim_again(pool: Pool, turn: tuple[str, str]) -> None:
    thread, turn_id = turn
    await claim(pool, thread, "", 10, 1)

    await write(pool, await claim(pool, thread, "", 10, 1), turn_id)


async def test_branches_do_not_disturb_each_other(pool: Pool, turn: tuple[str, str]) -> None:
    thread, turn_id = turn
    await claim(pool, thread, "", 10)
    left, right = await claim(pool, thread, "left", 20), await claim(pool, thread, "right", 21)

    await asyncio.gather(write(pool, left, turn_id), write(pool, right, turn_id))


async def test_a_claim_of_the_thread_ends_its_branches(pool: Pool, turn: tuple[str, str]) -> None:
    thread, turn_id = turn
    left = await claim(pool, thread, "left", 20)
    await claim(pool, thread, "", 30)

    with pytest.raises(StaleAttempt):
        await write(pool, left, turn_id)


async def test_a_claim_of_a_branch_ends_what_is_inside_it_only(pool: Pool, turn: tuple[str, str]) -> None:
    thread, turn_id = turn
    inside, beside = await claim(pool, thread, "left/x", 20), await claim(pool, thread, "leftover", 20)
    await claim(pool, thread, "left", 30)

    with pytest.raises(StaleAttempt):
        await write(pool, inside, turn_id)
    await write(pool, beside, turn_id)


async def test_a_late_branch_cannot_claim_inside_a_newer_scope(pool: Pool, turn: tuple[str, str]) -> None:
    thread, _ = turn
    await claim(pool, thread, "", 30)

    with pytest.raises(StaleAttempt):
        await claim(pool, thread, "left", 20)


async def test_a_stale_batch_writes_nothing_at_all(pool: Pool, turn: tuple[str, str]) -> None:
    thread, turn_id = turn
    old = await claim(pool, thread, "", 10, 1)
    # The event waits for company, so that it is in the batch of the write and not stored before the newer claim.
    async with FencedWriter(pool, old, turn_id, token_delay=60) as writer:
        saver = FencedSaver(pool, writer)
        writer.emit(Event("values", "1"))
        await claim(pool, thread, "", 10, 2)
        config: RunnableConfig = {
            "configurable": {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": str(uuid.uuid4())}
        }
        await saver.aput_writes(config, [("x", 1)], "task")
        with pytest.raises(StaleAttempt):
            await writer.flush()
        with pytest.raises(StaleAttempt):
            writer.raise_error()
        writer.error = None

    assert await fetch_all(pool, "read_events", turn_id=turn_id, after=0, limit=10) == []
    assert [c async for c in FencedSaver(pool).alist({"configurable": {"thread_id": thread}})] == []


async def test_a_claim_waits_for_a_write_under_way(pool: Pool, turn: tuple[str, str]) -> None:
    """What a transaction has checked cannot become stale before it commits."""
    thread, turn_id = turn
    old = await claim(pool, thread, "", 10, 1)
    inside, go = asyncio.Event(), asyncio.Event()

    async def slow(conn: Connection) -> None:
        await (await conn.execute("SELECT 1")).fetchone()  # the claim is checked by now
        inside.set()
        await go.wait()

    async with FencedWriter(pool, old, turn_id, token_delay=0) as writer:
        writing = asyncio.create_task(writer.write(slow))
        await inside.wait()
        claiming = asyncio.create_task(claim(pool, thread, "", 10, 2))
        done, _ = await asyncio.wait({claiming}, timeout=0.3)
        assert not done
        go.set()
        await writing
        await claiming


async def test_a_claim_sees_what_it_waited_for(pool: Pool, turn: tuple[str, str]) -> None:
    """Or an attempt would apply the input again that the one before it was just applying."""
    thread, turn_id = turn
    old = await claim(pool, thread, "", 10, 1)
    inside, go = asyncio.Event(), asyncio.Event()

    async def apply(conn: Connection) -> None:
        await turns.mark_applied(conn, turn_id)
        await (await conn.execute("SELECT 1")).fetchone()
        inside.set()
        await go.wait()

    async with FencedWriter(pool, old, turn_id, token_delay=0) as writer:
        writing = asyncio.create_task(writer.write(apply))
        await inside.wait()
        loading = asyncio.create_task(turns.claim_and_load(pool, Claim(thread, "", 10, 2), turn_id))
        await _waits(pool)
        go.set()
        await writing
        assert (await loading).applied


@pytest.mark.slow
async def test_a_claim_ends_a_transaction_that_hangs(pool: Pool, turn: tuple[str, str]) -> None:
    """As that of a frozen worker, whose connection lives on: its locks would keep the thread from everybody."""
    thread, turn_id = turn
    old = await claim(pool, thread, "", 10, 1)
    inside = asyncio.Event()

    async def hang(conn: Connection) -> None:
        await (await conn.execute("SELECT 1")).fetchone()
        inside.set()
        await asyncio.Event().wait()

    writer = FencedWriter(pool, old, turn_id, token_delay=0)
    await writer.__aenter__()
    writing = asyncio.create_task(writer.write(hang))
    await inside.wait()
    new = await claim(pool, thread, "", 10, 2)
    await write(pool, new, turn_id)
    assert not writing.done()  # it is still where it was, and has lost its connection
    writing.cancel()
    assert writer._task is not None  # pyright: ignore[reportPrivateUsage]
    writer._task.cancel()  # pyright: ignore[reportPrivateUsage]


async def _waits(pool: Pool) -> None:
    """Waits until a claim waits for a lock."""
    async with asyncio.timeout(10), pool.connection() as conn:
        while True:
            found = await conn.execute(
                "SELECT 1 AS one FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%turns.fence%'"
            )
            if await found.fetchone():
                return
            await asyncio.sleep(0.01)


async def test_a_deleted_thread_refuses_its_running_attempt(pool: Pool, turn: tuple[str, str]) -> None:
    thread, turn_id = turn
    it = await claim(pool, thread, "", 10)
    await fetch_all(pool, "delete_thread", thread_id=thread)

    with pytest.raises(StaleAttempt):
        await write(pool, it, turn_id)


async def test_offsets_of_parallel_branches_have_no_gap(pool: Pool, turn: tuple[str, str]) -> None:
    thread, turn_id = turn
    claims = [await claim(pool, thread, f"b{i}", 10) for i in range(8)]

    async def many(it: Claim) -> None:
        async with FencedWriter(pool, it, turn_id, token_delay=0) as writer:
            for i in range(50):
                writer.emit(Event("custom", str(i), it.scope))
                await asyncio.sleep(0)

    await asyncio.gather(*map(many, claims))
    rows = await fetch_all(pool, "read_events", turn_id=turn_id, after=0, limit=1000)

    assert [row["offset"] for row in rows] == list(range(1, 401))
