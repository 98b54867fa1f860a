"""The claim of an effect that a run waits for is taken with its first write, if nothing else happened (I5, I14)."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import uuid
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
import pytest_asyncio
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.types import interrupt

from activities.step import make_claim
from adapter import parked
from adapter.errors import Overtaken
from adapter.saver import FencedSaver
from adapter.store.claims import Claim, Renewal
from adapter.store.event_log import Event
from adapter.store.pool import Pool, create_pool
from adapter.writer import FencedWriter
from tests import rows
from tests.integration.test_parked import FITS, Line, State, parked_run, plain
from tests.servers import Postgres
from tests.stack import Stack, stack

FIRST, SECOND = (10, 1), (20, 1)


class Held:
    """A turn that a run has stored a checkpoint of, under a claim."""

    def __init__(self, pool: Pool, thread: str, turn_id: str) -> None:
        self.pool = pool
        self.turn_id = turn_id
        self.old = Claim(thread, "", *FIRST)
        self.new = Claim(thread, "", *SECOND)
        self.head = ""

    async def run(self, sql: str, *args: Any) -> Any:
        async with self.pool.connection() as conn:
            cursor = await conn.execute(sql.encode(), args)
            return await cursor.fetchone() if cursor.description else None

    async def fence(self) -> tuple[int, int]:
        row = await self.run("SELECT token, attempt FROM turns.fence WHERE scope = ''")
        return row["token"], row["attempt"]


@pytest_asyncio.fixture
async def held(database_url: str) -> AsyncIterator[Held]:
    async with create_pool(database_url, size=4, name="test") as pool:
        thread, turn_id = await rows.record(pool)
        held = Held(pool, thread, turn_id)
        await rows.claim(pool, thread, "", *FIRST)
        async with FencedWriter(pool, held.old, held.turn_id, token_delay=0) as writer:
            held.head = await checkpoint(FencedSaver(pool, writer), thread)
        await held.run("UPDATE turns.turn SET status = 'running', run_id = 'run'")
        yield held


async def checkpoint(saver: FencedSaver, thread: str) -> str:
    made = empty_checkpoint()
    place: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    await saver.aput(place, made, {"source": "loop", "step": 0, "parents": {}}, {})
    return made["id"]


async def goes_on(held: Held) -> None:
    """Writes an event as the next activity of the run."""
    async with FencedWriter(held.pool, held.old, held.turn_id, token_delay=0) as writer:
        writer.hold()
        writer.go_on(held.new, Renewal(held.old, "run", held.head))
        writer.emit(Event("custom", "1"))


async def test_the_first_write_takes_the_claim(held: Held) -> None:
    await goes_on(held)

    assert await held.fence() == SECOND
    assert (await held.run("SELECT count(*) AS n FROM turns.event"))["n"] == 1


async def test_it_is_taken_when_nothing_is_written(held: Held) -> None:
    async with FencedWriter(held.pool, held.old, held.turn_id, token_delay=0) as writer:
        writer.go_on(held.new, Renewal(held.old, "run", held.head))
        async with asyncio.timeout(5):
            while await held.fence() != SECOND:
                await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE turns.fence SET token = 15",
        "UPDATE turns.fence SET attempt = 2",
        "DELETE FROM turns.fence",
        "UPDATE turns.turn SET run_id = 'of a reset'",
        "UPDATE turns.turn SET status = 'interrupted'",
        "UPDATE turns.turn SET undone = true",
        "UPDATE checkpoints SET checkpoint_id = checkpoint_id || '-later'",
        "DELETE FROM checkpoints",
        "DELETE FROM turns.thread",
    ],
)
async def test_whatever_happened_meanwhile_keeps_it_from_writing(held: Held, sql: str) -> None:
    await held.run(sql)
    before = await held.run("SELECT token, attempt FROM turns.fence")

    with pytest.raises(Overtaken):
        await goes_on(held)

    assert await held.run("SELECT token, attempt FROM turns.fence") == before
    assert (await held.run("SELECT count(*) AS n FROM turns.event"))["n"] == 0


async def test_it_sees_what_it_waited_for(held: Held) -> None:
    """Somebody who holds the fence, and changes only what the turn says, is waited for and then found."""
    async with held.pool.connection() as conn, conn.transaction():
        await conn.execute("SELECT 1 FROM turns.fence FOR UPDATE")
        going = asyncio.create_task(goes_on(held))
        await asyncio.sleep(0.3)
        assert not going.done()
        await conn.execute("UPDATE turns.turn SET status = 'interrupted'")
    with pytest.raises(Overtaken):
        await going


async def test_an_attempt_that_comes_late_claims_first() -> None:
    run, runs = parked_run(), parked.Parked(8)
    await run.outcome()
    runs.keep("turn", run)
    soon = dataclasses.replace(FITS, timeout=30.0)

    assert runs.take_at_once("turn", dataclasses.replace(soon, timeout=0.0)) is None
    assert runs.take_at_once("turn", dataclasses.replace(soon, attempt=2)) is None
    assert runs.take_at_once("another", soon) is None
    assert runs.take_at_once("turn", soon) is run

    await run.discard()


async def test_one_that_was_overtaken_is_made_again(postgres: Postgres, temporal: str) -> None:
    ran = list[str]()

    async def stolen(state: State) -> Any:
        ran.append("b")
        if len(ran) == 1:
            await _on(running, "UPDATE turns.fence SET token = token + 1")
        return {"trail": ["b"]}

    line = Line(*plain("a"), ("b", stolen, {}), *plain("c"))
    async with stack(postgres.clone(), temporal, {"graph": line.make}) as running:
        thread = str(uuid.uuid4())
        row = await running.turn(thread=thread, input={"trail": []})

        assert row["status"] == "success", row["error"]
        assert (await running.state("graph", thread)).values["trail"] == ["a", "b", "c"]
    assert ran == ["b", "b"]


async def test_a_slow_effect_has_its_claim_while_it_runs(postgres: Postgres, temporal: str) -> None:
    claims = list[tuple[int, int]]()

    async def slow(state: State) -> Any:
        for _ in range(2):
            row = await _on(running, "SELECT token, attempt FROM turns.fence WHERE scope = ''")
            claims.append((row["token"], row["attempt"]))
            await asyncio.sleep(0.7)
        return {"trail": ["b"]}

    line = Line(*plain("a"), ("b", slow, {}))
    async with stack(postgres.clone(), temporal, {"graph": line.make}) as running:
        assert (await running.turn(thread=str(uuid.uuid4()), input={"trail": []}))["status"] == "success"
    assert claims[0] < claims[1]


async def test_a_node_that_fails_at_once_fails_its_turn(postgres: Postgres, temporal: str) -> None:
    def fails(state: State) -> Any:
        raise ValueError("no")

    line = Line(*plain("a"), ("b", fails, {}))
    async with stack(postgres.clone(), temporal, {"graph": line.make}) as running:
        row = await running.turn(thread=str(uuid.uuid4()), input={"trail": []})
    assert (row["status"], row["error"]["error"]) == ("error", "ValueError")


@pytest.mark.parametrize(
    ("value", "error", "asks"),
    [
        ("a\x00b", "NotStorable", True),
        (threading.Lock(), "TypeError", True),
        (threading.Lock(), "TypeError", False),
    ],
    ids=["asks nul", "asks lock", "returns lock"],
)
async def test_a_first_write_that_cannot_be_stored(
    postgres: Postgres, temporal: str, value: Any, error: str, asks: bool
) -> None:
    def says(state: State) -> Any:
        return {"trail": [interrupt(value) if asks else value]}

    line = Line(*plain("a"), ("b", says, {}))
    async with stack(postgres.clone(), temporal, {"graph": line.make}) as running:
        row = await running.turn(thread=str(uuid.uuid4()), input={"trail": []})
    assert (row["status"], row["error"]["error"]) == ("error", error)


async def _cut_off(url: str) -> None:
    """Ends the connections of the worker."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as conn:
        await conn.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND application_name <> 'test'"
        )


async def test_a_node_that_fails_without_postgres(postgres: Postgres, temporal: str) -> None:
    url, tried = postgres.clone(), list[int]()

    async def fails(state: State) -> Any:
        tried.append(1)
        if len(tried) == 1:
            await _cut_off(url)
        raise ValueError("no")

    async with stack(url, temporal, {"graph": Line(*plain("a"), ("b", fails, {})).make}) as running:
        row = await running.turn(thread=str(uuid.uuid4()), input={"trail": []})
    assert (row["status"], row["error"]["error"]) == ("error", "ValueError")


async def test_a_claim_that_cannot_be_taken_at_once_costs_nothing(postgres: Postgres, temporal: str) -> None:
    url, ran = postgres.clone(), list[str]()

    async def long(state: State) -> Any:
        ran.append("b")
        await _cut_off(url)
        await asyncio.sleep(1.5)
        return {"trail": ["b"]}

    async with stack(
        url, temporal, {"graph": Line(*plain("a"), ("b", long, {}), *plain("c")).make}
    ) as running:
        row = await running.turn(thread=str(uuid.uuid4()), input={"trail": []})
    assert (row["status"], ran) == ("success", ["b"])


async def test_only_an_attempt_that_may_be_followed_by_another_claims_late(
    postgres: Postgres, temporal: str
) -> None:
    claimed = list[bool]()

    async def looks(state: State) -> Any:
        row = await _on(running, "SELECT token FROM turns.fence WHERE scope = ''")
        claimed.append(row["token"] == make_claim("").token)
        return {"trail": ["n"]}

    nodes: Any = [
        ("a", looks, {}),
        ("b", looks, {}),
        ("c", looks, {"metadata": {"durable": {"max_attempts": 1}}}),
    ]
    async with stack(postgres.clone(), temporal, {"graph": Line(*nodes).make}) as running:
        assert (await running.turn(thread=str(uuid.uuid4()), input={"trail": []}))["status"] == "success"
    assert claimed == [False, False, True]


async def test_whoever_keeps_it_from_its_claim_is_ended(held: Held) -> None:
    frozen = await psycopg.AsyncConnection.connect(str(held.pool.conninfo))
    await frozen.execute("SELECT 1 FROM turns.fence FOR SHARE")
    async with asyncio.timeout(10):
        await goes_on(held)
    await frozen.close()
    assert await held.fence() == SECOND


async def test_a_turn_ends_with_its_last_nodes_result(postgres: Postgres, temporal: str) -> None:
    async with stack(postgres.clone(), temporal, {"graph": Line(*plain("a", "b")).make}) as running:
        await running.turn(thread=str(uuid.uuid4()), input={"trail": []})
        turn = await _on(running, "SELECT xmin::text FROM turns.turn")
        last = await _on(running, "SELECT xmin::text FROM checkpoints ORDER BY checkpoint_id DESC LIMIT 1")
        shown = await _on(running, 'SELECT xmin::text FROM turns.event ORDER BY "offset" DESC LIMIT 1')
    assert turn == last == shown


async def _on(running: Stack, sql: str) -> Any:
    async with running.pool.connection() as conn:
        cursor = await conn.execute(sql.encode())
        return await cursor.fetchone() if cursor.description else None
