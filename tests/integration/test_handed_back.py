"""A worker stops in the middle of several tasks of one activity: what is done stays done and is shown once."""

from __future__ import annotations

import asyncio
import contextlib
import operator
import uuid
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Annotated, Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Send
from temporalio.client import Client
from typing_extensions import TypedDict

from activities.worker import run
from adapter.graphs import Project
from adapter.settings import Settings
from adapter.store.pool import create_pool
from tests.servers import Postgres
from tests.stack import Stack


class State(TypedDict, total=False):
    trail: Annotated[list[str], operator.add]


@contextlib.asynccontextmanager
async def _worker(stack: Stack) -> AsyncGenerator[None]:
    stop = asyncio.Event()
    running = asyncio.create_task(run(stack.settings, stack.project, stop, client=stack.client))
    try:
        yield
    finally:
        stop.set()
        assert await running


@pytest.mark.slow
async def test_only_what_was_under_way_runs_again(postgres: Postgres, temporal: str) -> None:
    ran, hangs, go = list[str](), asyncio.Event(), asyncio.Event()

    async def work(name: str) -> Any:
        ran.append(name)
        if name == "b" and ran.count("b") == 1:
            hangs.set()
            await go.wait()
        return {"trail": [name]}

    def send(state: State) -> Any:
        return [Send("work", name) for name in "abcd"]

    builder: Any = StateGraph(State)
    builder.add_node("work", work).add_conditional_edges(START, send, ["work"])
    url = postgres.clone()
    settings = Settings(
        database_url=url,
        task_queue=f"turns-{uuid.uuid4().hex[:8]}",
        parallel_effects=2,  # two tasks an activity
        shutdown_grace=0.2,
    )
    async with create_pool(url, size=4, name="test") as pool:
        project = Project(Path("langgraph.json"), {}, {"graph": builder.compile()})
        stack = Stack(settings, project, await Client.connect(temporal), pool)
        thread = str(uuid.uuid4())
        async with _worker(stack):
            turn = await stack.submit(
                thread=thread, input={"trail": []}, stream_mode=["tasks", "updates", "debug"]
            )
            await hangs.wait()
            while sum(name == "updates" for name, _ in await stack.events(turn)) < 3:
                await asyncio.sleep(0.01)
        async with _worker(stack):
            row = await stack.ended(turn)
        events = await stack.events(turn)

    ended = [data for name, data in events if name == "tasks" and "result" in data]
    in_debug = [data["payload"] for name, data in events if name == "debug" and data["type"] == "task_result"]

    assert row["status"] == "success"
    assert sorted(ran) == ["a", "b", "b", "c", "d"]
    assert sorted(data["work"]["trail"] for name, data in events if name == "updates") == [
        [n] for n in "abcd"
    ]
    assert sorted(task["result"]["trail"] for task in ended) == [[n] for n in "abcd"]
    assert [task["id"] for task in in_debug] == [task["id"] for task in ended]
