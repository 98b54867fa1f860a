"""Owns the reading of what a turn left: its values and the questions it asks, whatever ran after it.

Used by whoever waits for a turn, and by its webhook.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.types import StateSnapshot

from adapter._pregel import AnyGraph, copy_graph
from adapter.graphs import Project
from adapter.store.pool import Connection, Pool, store_errors
from adapter.wire import interrupt_json


@asynccontextmanager
async def readable(
    project: Project, thread: Mapping[str, Any], graph_id: str, on: Pool | Connection
) -> AsyncGenerator[AnyGraph]:
    """Yields the user's graph, reading and writing checkpoints on `on`, outside of any turn.

    Raises:
        NotFound: the project has no such graph.
    """
    given = cast("Mapping[str, Any]", thread["config"].get("configurable") or {})
    config: RunnableConfig = {"configurable": {**given, "thread_id": str(thread["thread_id"])}}
    async with project.plain(graph_id, config) as graph, store_errors():
        yield copy_graph(graph, checkpointer=AsyncPostgresSaver(cast("Any", on)))


async def state_at(graph: AnyGraph, config: RunnableConfig, *, subgraphs: bool) -> StateSnapshot:
    """Returns a state of a graph that `readable` has made.

    Raises:
        ValueError: its namespace names no subgraph.
    """
    try:
        return await graph.aget_state(config, subgraphs=subgraphs)
    except Exception:
        # One of the graph's reducers may not take what was written last, such as an input that it was not made for.
        # That is not applied to a state whose checkpoint is named.
        saved = await cast("AsyncPostgresSaver", graph.checkpointer).aget_tuple(config)
        return await graph.aget_state(config if saved is None else saved.config, subgraphs=subgraphs)


async def last_state(
    project: Project, pool: Pool, thread: Mapping[str, Any], graph_id: str, turn_id: str
) -> StateSnapshot:
    """Returns the last state that a turn left; the thread's head for one that left none.

    Raises:
        NotFound: the project has no such graph.
    """
    config: RunnableConfig = {"configurable": {"thread_id": str(thread["thread_id"]), "checkpoint_ns": ""}}
    async with readable(project, thread, graph_id, pool) as graph:
        async for snapshot in graph.aget_state_history(config, filter={"run_id": turn_id}, limit=1):
            return snapshot
        return await state_at(graph, config, subgraphs=False)


def values_of(snapshot: StateSnapshot) -> Any:
    """Returns a state's values, with its questions under `__interrupt__`."""
    values: Any = snapshot.values
    if snapshot.interrupts and isinstance(values, Mapping):
        questions = [interrupt_json(interrupt) for interrupt in snapshot.interrupts]
        return {**cast("Mapping[str, Any]", values), "__interrupt__": questions}
    return values
