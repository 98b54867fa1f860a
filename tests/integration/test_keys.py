"""Idempotency keys: what they are the same for, and what they differ for (I7)."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.graphs.keyed import GRAPHS, KEYS
from tests.servers import Postgres
from tests.stack import Stack, stack


@pytest_asyncio.fixture(scope="module")
async def running(postgres: Postgres, temporal: str) -> AsyncIterator[Stack]:
    async with stack(postgres.clone(), temporal, {name: make() for name, make in GRAPHS.items()}) as it:
        yield it


@pytest.fixture(autouse=True)
def _no_keys() -> None:
    KEYS.clear()


def keys(*nodes: str) -> list[str]:
    return [key for name, key in KEYS if name in nodes or not nodes]


async def run(running: Stack, graph: str, thread: str | None = None, **request: Any) -> str:
    thread = thread or str(uuid.uuid4())
    await running.turn(graph, thread=thread, **(request or {"input": {"trail": []}}))
    return thread


async def test_same_for_a_retry(running: Stack) -> None:
    await run(running, "retried")

    assert len(keys()) == 3
    assert len(set(keys())) == 1


async def test_same_for_a_resume_after_an_interrupt(running: Stack) -> None:
    thread = await run(running, "asking")
    await run(running, "asking", thread, command={"resume": "yes"})

    assert len(keys()) == 2
    assert len(set(keys())) == 1


async def test_same_for_each_of_several_resumes(running: Stack) -> None:
    thread = await run(running, "asking_twice")
    await run(running, "asking_twice", thread, command={"resume": "yes"})
    await run(running, "asking_twice", thread, command={"resume": "yes"})

    assert len(keys()) == 3
    assert len(set(keys())) == 1


async def test_same_when_a_failed_turn_is_continued(running: Stack) -> None:
    thread = await run(running, "failing_once")
    await run(running, "failing_once", thread, input=None)

    assert len(keys()) == 2
    assert len(set(keys())) == 1


async def test_the_same_request_again_is_the_same_turn(running: Stack) -> None:
    thread = str(uuid.uuid4())
    request: dict[str, Any] = {"input": {"trail": []}, "key": "request-1"}
    first = await running.submit("one", thread=thread, **request)
    await running.ended(first)
    again = await running.submit("one", thread=thread, **request)
    await running.ended(again)

    assert first == again
    assert len(keys()) == 1


async def test_different_for_each_visit_in_a_loop(running: Stack) -> None:
    await run(running, "looping")

    assert len(keys()) == 3
    assert len(set(keys())) == 3


async def test_different_for_each_send(running: Stack) -> None:
    await run(running, "sending")

    assert len(set(keys())) == 3


async def test_different_for_another_turn(running: Stack) -> None:
    thread = await run(running, "one")
    await run(running, "one", thread)

    assert len(set(keys())) == 2


async def test_different_for_another_thread(running: Stack) -> None:
    await run(running, "one")
    await run(running, "one")

    assert len(set(keys())) == 2


async def test_different_for_another_place_in_the_graph(running: Stack) -> None:
    await run(running, "nested")

    assert len(set(keys())) == 3


async def test_different_inside_a_graph_that_a_node_invokes(running: Stack) -> None:
    await run(running, "inside_a_nested_run")

    assert len(set(keys())) == 3


async def test_a_business_key_names_the_effect_wherever_it_happens(running: Stack) -> None:
    thread = await run(running, "business")
    await run(running, "business", thread)
    await run(running, "business")

    assert len(keys()) == 6
    assert len(set(keys()[:4])) == 1
    assert len(set(keys())) == 2
