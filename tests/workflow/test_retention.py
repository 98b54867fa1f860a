"""Events of turns that ended long ago are deleted by a Temporal Schedule, in batches; the turns stay."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator

import pytest
from temporalio.testing import ActivityEnvironment

from activities.retention import RetentionActivities
from adapter.store import turns
from adapter.store.event_log import Event, append_events
from adapter.store.pool import Pool, create_pool, fetch_all, fetch_one
from tests import servers
from tests.graphs.shapes import linear
from tests.graphs.slow import Switch, failing
from tests.rows import record
from tests.stack import stack
from tests.workflow.resets import closed, reset
from workflows import names


async def _age(pool: Pool, turn_id: str, days: float) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "UPDATE turns.turn SET updated_at = now() - make_interval(secs => 86400 * %s) WHERE turn_id = %s",
            (days, turn_id),
        )


async def _offsets(pool: Pool, turn_id: str) -> list[int]:
    rows = await fetch_all(pool, "read_events", turn_id=turn_id, after=0, limit=1000)
    return [row["offset"] for row in rows]


@pytest.fixture
def own_temporal() -> Iterator[str]:
    """A server of its own: the schedule belongs to the first worker that a server sees."""
    with servers.temporal() as address:
        yield address


async def test_the_schedule_does_it(database_url: str, own_temporal: str) -> None:
    async with stack(database_url, own_temporal, {"graph": linear()}) as running:
        rows = [await running.turn(thread=str(uuid.uuid4()), input={"trail": []}) for _ in range(2)]
        old, young = (str(row["turn_id"]) for row in rows)
        await _age(running.pool, old, 7.1)
        await _age(running.pool, young, 6.9)
        kept = await _offsets(running.pool, young)
        await running.client.get_schedule_handle(names.PRUNE_SCHEDULE).trigger()
        async with asyncio.timeout(30):
            while await _offsets(running.pool, old):
                await asyncio.sleep(0.02)
        row = await running.ended(old)

        assert (row["status"], row["last_offset"]) == ("success", rows[0]["last_offset"])
        assert await _offsets(running.pool, young) == kept


async def test_a_reset_after_it_goes_on_with_the_next_offset(database_url: str, temporal: str) -> None:
    switch = Switch(failures=1)
    switch.go.set()
    async with stack(database_url, temporal, {"graph": failing(switch)}, event_retention=1) as running:
        thread = str(uuid.uuid4())
        turn = await running.submit(thread=thread, input={"trail": []}, stream_mode=["updates"])
        failed = await running.ended(turn)
        await closed(running, thread)
        await _age(running.pool, turn, 2)
        await running.client.execute_workflow(
            names.PRUNE_WORKFLOW, id=f"prune-{turn}", task_queue=running.settings.task_queue
        )
        assert await _offsets(running.pool, turn) == []
        await reset(running, thread)
        await closed(running, thread)
        row = await running.ended(turn)

        assert (row["status"], failed["last_offset"]) == ("success", 3)  # metadata, first, error
        assert await _offsets(running.pool, turn) == [4, 5]  # pay, last


async def _turn(pool: Pool, events: int, *, days: float, status: str | None = "success") -> str:
    _, turn_id = await record(pool)
    async with pool.connection() as conn, conn.transaction():
        if events:
            await append_events(conn, turn_id, [Event("custom", str(n)) for n in range(events)])
        if status is not None:
            await turns.finish(conn, turn_id, status=status, thread_status="idle")
    await _age(pool, turn_id, days)
    return turn_id


async def _prune(pool: Pool, *, days: float) -> int:
    activities = RetentionActivities(pool, days=days, turns=2, events=3)
    return await ActivityEnvironment().run(activities.prune)


async def test_batches_take_all_that_is_old_and_nothing_else(database_url: str) -> None:
    async with create_pool(database_url, size=2, name="test") as pool:
        old = [await _turn(pool, events, days=9 - events) for events in (0, 3, 1, 4, 0, 2)]
        old.append(await _turn(pool, 5, days=3, status="error"))
        kept = [
            await _turn(pool, 2, days=1),
            await _turn(pool, 2, days=9, status=None),  # still open
        ]

        assert await _prune(pool, days=2) == 15
        assert [await _offsets(pool, turn) for turn in old] == [[]] * 7
        assert [await _offsets(pool, turn) for turn in kept] == [[1, 2]] * 2
        assert await _prune(pool, days=2) == 0


async def test_a_turn_that_ended_once_more_is_pruned_once_more(database_url: str) -> None:
    async with create_pool(database_url, size=2, name="test") as pool:
        turn = await _turn(pool, 4, days=8, status="error")
        assert await _prune(pool, days=7) == 4
        async with pool.connection() as conn, conn.transaction():
            await append_events(conn, turn, [Event("custom", "again")])
            await turns.finish(conn, turn, status="success", thread_status="idle")
        assert await _offsets(pool, turn) == [5]
        row = await fetch_one(pool, "get_turn", turn_id=turn)
        assert row is not None and row["last_offset"] == 5

        assert await _prune(pool, days=7) == 0
        async with pool.connection() as conn:  # as eight days later
            await conn.execute(
                "UPDATE turns.turn SET updated_at = updated_at - interval '8 days', "
                "pruned_at = pruned_at - interval '8 days'"
            )
        assert await _prune(pool, days=7) == 1


@pytest.mark.parametrize(("days", "left"), [(0, 2), (1, 0)])
async def test_zero_days_keep_them_for_ever(database_url: str, days: float, left: int) -> None:
    async with create_pool(database_url, size=2, name="test") as pool:
        turn = await _turn(pool, 2, days=10_000)
        await _prune(pool, days=days)

        assert len(await _offsets(pool, turn)) == left
