"""What LangGraph promises to node code holds inside an activity: store, context, heartbeat, attempt, ids."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass
from typing import Any

from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.types import RetryPolicy, TimeoutPolicy
from typing_extensions import TypedDict

from tests.servers import Postgres
from tests.stack import stack


class State(TypedDict, total=False):
    seen: Any


@dataclass
class Context:
    user: str = "nobody"


def one(node: Any, **options: Any) -> Any:
    builder = StateGraph(State, context_schema=Context)
    builder.add_node("node", node, **options)
    builder.add_edge(START, "node")
    return builder.compile()


async def run(postgres: Postgres, temporal: str, graph: Any, **request: Any) -> tuple[dict[str, Any], Any]:
    async with stack(postgres.clone(), temporal, {"graph": graph}, heartbeat_timeout=1.0) as running:
        thread = str(uuid.uuid4())
        row = await running.turn(thread=thread, **{"input": {"seen": None}, **request})
        return row, (await running.state("graph", thread)).values["seen"]


async def test_store(postgres: Postgres, temporal: str) -> None:
    async def node(state: State, *, store: BaseStore) -> Any:
        await store.aput(("users",), "1", {"name": "Ada"})
        item = await store.aget(("users",), "1")
        return {"seen": item and item.value}

    _, seen = await run(postgres, temporal, one(node))

    assert seen == {"name": "Ada"}


async def test_store_from_a_sync_node(postgres: Postgres, temporal: str) -> None:
    def node(state: State, runtime: Runtime[Context]) -> Any:
        assert runtime.store is not None
        runtime.store.put(("users",), "1", {"name": "Ada"})
        item = runtime.store.get(("users",), "1")
        return {"seen": item and item.value}

    _, seen = await run(postgres, temporal, one(node))

    assert seen == {"name": "Ada"}


async def test_context(postgres: Postgres, temporal: str) -> None:
    async def node(state: State, runtime: Runtime[Context]) -> Any:
        return {"seen": runtime.context.user}

    _, seen = await run(postgres, temporal, one(node), context={"user": "ada"})

    assert seen == "ada"


async def test_ids(postgres: Postgres, temporal: str) -> None:
    async def node(state: State, runtime: Runtime[Context]) -> Any:
        info = runtime.execution_info
        assert info is not None
        return {"seen": [info.thread_id, info.run_id]}

    row, seen = await run(postgres, temporal, one(node))

    assert seen == [str(row["thread_id"]), str(row["turn_id"])]


async def test_attempt_is_temporals(postgres: Postgres, temporal: str) -> None:
    attempts: list[int] = []

    async def node(state: State, runtime: Runtime[Context]) -> Any:
        assert runtime.execution_info is not None
        attempts.append(runtime.execution_info.node_attempt)
        if len(attempts) < 3:
            raise ConnectionError("not yet")
        return {"seen": attempts}

    policy = RetryPolicy(initial_interval=0.01, jitter=False)
    _, seen = await run(postgres, temporal, one(node, retry_policy=policy))

    assert seen == [1, 2, 3]


async def test_heartbeat_keeps_an_idle_timeout_away(postgres: Postgres, temporal: str) -> None:
    async def node(state: State, runtime: Runtime[Context]) -> Any:
        for _ in range(5):
            await asyncio.sleep(0.2)
            runtime.heartbeat()
        return {"seen": "done"}

    _, seen = await run(postgres, temporal, one(node, timeout=TimeoutPolicy(idle_timeout=0.5)))

    assert seen == "done"


async def test_heartbeat_from_a_sync_node(postgres: Postgres, temporal: str) -> None:
    def node(state: State, runtime: Runtime[Context]) -> Any:
        runtime.heartbeat()
        return {"seen": "done"}

    _, seen = await run(postgres, temporal, one(node))

    assert seen == "done"


async def test_a_run_timeout_ends_the_node_as_langgraph_does(postgres: Postgres, temporal: str) -> None:
    async def node(state: State) -> Any:
        await asyncio.sleep(30)

    async with stack(postgres.clone(), temporal, {"graph": one(node, timeout=0.3)}) as running:
        row = await running.turn(thread=str(uuid.uuid4()), input={"seen": None})

    assert row["status"] == "error"
    assert row["error"]["error"] == "NodeTimeoutError"


async def test_a_timeout_is_retried_when_the_policy_says_so(postgres: Postgres, temporal: str) -> None:
    attempts: list[int] = []

    async def node(state: State) -> Any:
        attempts.append(1)
        if len(attempts) == 1:
            await asyncio.sleep(30)
        return {"seen": len(attempts)}

    policy = RetryPolicy(initial_interval=0.01, jitter=False, retry_on=Exception)
    _, seen = await run(postgres, temporal, one(node, timeout=0.3, retry_policy=policy))

    assert seen == 2
