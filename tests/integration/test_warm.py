"""What a worker remembers of a running turn is what PostgreSQL holds, or is not used."""

from __future__ import annotations

import operator
import uuid
from collections.abc import AsyncIterator
from typing import Annotated, Any

import pytest_asyncio
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, empty_checkpoint
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from adapter.saver import FencedSaver
from adapter.store.pool import Pool, create_pool
from adapter.warm import Values, Warm
from adapter.writer import FencedWriter
from tests import rows
from tests.stack import Stack, stack
from tests.workflow.resets import closed, reset


@pytest_asyncio.fixture
async def opened(database_url: str) -> AsyncIterator[tuple[Pool, FencedWriter]]:
    async with create_pool(database_url, size=4, name="test") as pool:
        thread, turn_id = await rows.record(pool)
        async with FencedWriter(pool, await rows.claim(pool, thread), turn_id, token_delay=0.005) as writer:
            yield pool, writer


async def test_only_what_changed_is_read(opened: tuple[Pool, FencedWriter]) -> None:
    pool, writer = opened
    mine, theirs = FencedSaver(pool, writer), FencedSaver(pool, writer)
    place: RunnableConfig = {"configurable": {"thread_id": writer.claim.thread_id, "checkpoint_ns": ""}}
    stored = await _put(mine, place, {"kept": [1], "changed": [1], "plain": 1, "gone": None}, "1")
    kept = mine.values["", "kept"][1]
    changed = mine.values["", "changed"][1]
    stored = await _put(
        theirs, stored, {"kept": [1], "changed": [2], "plain": 2}, "2", only=("changed", "plain")
    )
    await theirs.aput_writes(stored, [("b", [1]), ("a", [2])], "task")
    await writer.drain()

    cold = await FencedSaver(pool).aget_tuple(place)
    warm = await FencedSaver(pool, writer, values=mine.values).aget_tuple(place)

    assert warm == cold and warm is not None
    found = warm.checkpoint["channel_values"]
    assert found["kept"] is kept and found["changed"] is not changed
    assert found == {"kept": [1], "changed": [2], "plain": 2}


async def _put(
    saver: FencedSaver,
    config: RunnableConfig,
    values: dict[str, Any],
    version: str,
    only: tuple[str, ...] | None = None,
) -> RunnableConfig:
    checkpoint = empty_checkpoint()
    checkpoint["v"] = 4
    checkpoint["channel_values"] = values
    new: ChannelVersions = dict.fromkeys(only or values, version)
    checkpoint["channel_versions"] = {name: new.get(name, "1") for name in values}
    return await saver.aput(config, checkpoint, {"source": "loop", "step": int(version), "parents": {}}, new)


def test_the_turns_that_ran_last_are_remembered() -> None:
    warm, values = Warm(2), Values({("", "x"): ("1", [1])})
    for turn in ("a", "b", "a", "c"):
        warm.keep(turn, values)
    assert [bool(warm.take(turn)) for turn in ("a", "b", "c", "a")] == [True, False, True, False]
    none = Warm(0)
    none.keep("a", values)
    assert none.take("a") == {}


def _extend(left: list[str], right: list[str]) -> list[str]:
    """As `operator.add`, but in place, as a reducer should not be."""
    left.extend(right)
    return left


class _Trail(TypedDict, total=False):
    trail: Annotated[list[str], _extend]
    sure: Annotated[list[str], operator.add]


async def test_what_a_failed_attempt_changed_in_place_is_not_used(database_url: str, temporal: str) -> None:
    fails = [True]

    def node(name: str) -> Any:
        async def run(state: _Trail) -> Any:
            if name == "c" and fails:
                raise ValueError("once")
            return {"trail": [name], "sure": [name]}

        return run

    builder: Any = StateGraph(_Trail)
    before = START
    for name in ("a", "b", "c", "d"):
        builder.add_node(name, node(name), metadata={"durable": "inline"} if name == "c" else None)
        builder.add_edge(before, name)
        before = name
    async with stack(database_url, temporal, {"graph": builder.compile()}) as running:
        thread = str(uuid.uuid4())
        turn = await running.submit(thread=thread, input={"trail": ["x"], "sure": ["x"]})
        assert (await running.ended(turn))["status"] == "error"
        fails.clear()
        await closed(running, thread)
        await reset(running, thread)
        assert (await _ended(running, thread, turn))["status"] == "success"
        values = (await running.state("graph", thread)).values

    assert values["trail"] == values["sure"] == ["x", "a", "b", "c", "d"]


async def _ended(running: Stack, thread: str, turn: str) -> Any:
    await closed(running, thread)
    return await running.ended(turn)
