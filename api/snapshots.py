"""Owns the reading and editing of a thread's state, through the user's own graph and LangGraph's own saver.

Nothing runs here but what LangGraph runs to describe or to edit a state; turns run in workers only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.errors import EmptyInputError, InvalidUpdateError
from langgraph.types import StateSnapshot, StateUpdate
from psycopg.rows import DictRow

from adapter._pregel import AnyGraph
from adapter.errors import Conflict, Invalid, NotFound, PublicError, StoreUnavailable, TurnsError
from adapter.graphs import Project
from adapter.outcome import last_state, readable, state_at, values_of
from adapter.saver import ORIGIN, VISIT
from adapter.store.pool import Connection, Pool, store_errors
from adapter.store.sql import query
from adapter.wire import error_json

log = logging.getLogger("turns.api")

# A page of threads reads their states; this many at a time, so that it cannot take the pool.
_STATES_AT_A_TIME = 4


class BadUpdate(PublicError):
    """The graph does not take this edit."""

    status = 400


@dataclass(frozen=True, slots=True)
class Address:
    """A place in a thread's history.

    Attributes:
        checkpoint_id: None is the latest.
        checkpoint_ns: '' is the root graph, otherwise `node:task id` of the subgraphs down, joined by '|'.
    """

    checkpoint_id: str | None = None
    checkpoint_ns: str = ""

    def config(self, thread_id: str, metadata: Mapping[str, Any] | None = None) -> RunnableConfig:
        """Returns LangGraph's form of it."""
        configurable: dict[str, Any] = {"thread_id": thread_id, "checkpoint_ns": self.checkpoint_ns}
        if self.checkpoint_id is not None:
            configurable["checkpoint_id"] = self.checkpoint_id
        return {"configurable": configurable, "metadata": dict(metadata or {})}


class Snapshots:
    """States of threads.

    Args:
        project: the graphs.
        pool: PostgreSQL.
    """

    def __init__(self, project: Project, pool: Pool) -> None:
        self._project = project
        self._pool = pool
        self._turnstile = asyncio.Semaphore(_STATES_AT_A_TIME)

    # ------------------------------------------------------------ read

    async def state(self, thread: DictRow, at: Address, *, subgraphs: bool) -> StateSnapshot | None:
        """Returns a state; None when the thread has no graph yet.

        Raises:
            NotFound: the project has no such graph any more.
        """
        graph_id = graph_of(thread)
        if graph_id is None:
            return None
        async with readable(self._project, thread, graph_id, self._pool) as graph:
            return await _read(graph, at.config(str(thread["thread_id"])), subgraphs=subgraphs)

    async def history(
        self,
        thread: DictRow,
        at: Address,
        *,
        metadata: Mapping[str, Any] | None,
        before: str | None,
        limit: int,
    ) -> list[StateSnapshot]:
        """Returns states, the newest first."""
        graph_id = graph_of(thread)
        if graph_id is None:
            return []
        earlier: RunnableConfig | None = {"configurable": {"checkpoint_id": before}} if before else None
        async with readable(self._project, thread, graph_id, self._pool) as graph:
            found = graph.aget_state_history(
                at.config(str(thread["thread_id"])),
                filter=dict(metadata) if metadata else None,
                before=earlier,
                limit=limit,
            )
            with _reading():
                return [snapshot async for snapshot in found]

    async def values(self, thread: DictRow) -> Any:
        """Returns a thread's latest values, or None before it has any.

        A thread whose state cannot be read, because its graph is gone, has changed too much, or was given what it does
        not take, is still a thread that clients list and delete: its values are None, too.
        """
        async with self._turnstile:
            try:
                snapshot = await self.state(thread, Address(), subgraphs=False)
            except NotFound:
                return None
            except StoreUnavailable:
                raise
            except Exception as exc:  # of the user's own code
                log.warning("the state of thread %s cannot be read", thread["thread_id"], exc_info=exc)
                return None
        return None if snapshot is None or snapshot.created_at is None else snapshot.values

    async def outcome(self, ended: DictRow) -> Any:
        """Returns what a turn left: its values, and its questions under `__interrupt__`.

        Args:
            ended: as statement `turn_outcome` returns it.

        Raises:
            NotFound: the project has no such graph any more.
            Invalid: the graph does not take what the thread holds.
        """
        with _reading():
            turn_id = str(ended["turn_id"])
            return values_of(await last_state(self._project, self._pool, ended, ended["graph_id"], turn_id))

    # ------------------------------------------------------------ edit

    async def update(
        self, thread_id: str, at: Address, updates: Sequence[Sequence[StateUpdate]]
    ) -> dict[str, Any]:
        """Edits the state, or forks it when `at` is not its head; returns the new checkpoint's address.

        Raises:
            NotFound: the thread does not exist.
            Conflict: a turn is open on it.
            BadUpdate: the graph does not take the edit, or the thread has none.
            Invalid: one of the graph's reducers or branches does not take the values.
        """
        async with store_errors(), self._pool.connection() as conn, conn.transaction():
            thread = await self._lock(conn, thread_id)
            graph_id = graph_of(thread)
            if graph_id is None:
                raise BadUpdate(
                    f"Thread '{thread_id}' has no assigned graph ID. Run the thread once, or set 'graph_id' in its "
                    "metadata, before editing its state."
                )
            async with readable(self._project, thread, graph_id, conn) as graph:
                head = await _read(graph, Address(None, at.checkpoint_ns).config(thread_id), subgraphs=False)
                config, forks = _edit_config(at, thread_id, graph_id, head)
                edited = await _edit(graph, config, updates)
                after = await _read(graph, Address().config(thread_id), subgraphs=False)
            if forks:
                # What runs next does it again on purpose: it gets keys of its own (I7).
                await conn.execute(query("set_thread_origin"), {"thread_id": thread_id, "origin": None})
            status = "interrupted" if after.next else "idle"
            await conn.execute(query("touch_thread_state"), {"thread_id": thread_id, "status": status})
        return edited

    @staticmethod
    async def _lock(conn: Connection, thread_id: str) -> DictRow:
        """Locks the thread against new turns and against a begin under way; returns its row."""
        params = {"thread_id": thread_id}
        await _refuse_busy(conn, thread_id)  # at once, without waiting for what runs
        await conn.execute(query("lock_fence"), params)
        thread = await (await conn.execute(query("lock_thread"), params)).fetchone()
        if thread is None:
            raise NotFound(f"Thread with ID {thread_id} not found")
        await _refuse_busy(conn, thread_id)
        return thread


async def _refuse_busy(conn: Connection, thread_id: str) -> None:
    turns = await (await conn.execute(query("open_turns"), {"thread_id": thread_id})).fetchall()
    if turns:
        runs = ", ".join(str(turn["turn_id"]) for turn in turns)
        raise Conflict(f"Thread {thread_id} has in-flight runs: {runs}. Wait for them, or cancel them.")


def graph_of(thread: Mapping[str, Any]) -> str | None:
    """Returns the graph that a thread's state belongs to, or None before its first run."""
    graph_id = thread["metadata"].get("graph_id")
    return graph_id if isinstance(graph_id, str) else None


async def _read(graph: AnyGraph, config: RunnableConfig, *, subgraphs: bool) -> StateSnapshot:
    with _reading():
        return await state_at(graph, config, subgraphs=subgraphs)


@contextmanager
def _reading() -> Generator[None]:
    """Makes a refusal of what a graph raises when it is shown its own checkpoints: its schema, or one of its channels.

    Raises:
        Invalid: it raised, or has no subgraph of this name.
    """
    try:
        yield
    except (TurnsError, psycopg.Error):
        raise
    except Exception as exc:
        raise Invalid(error_json(exc)["message"]) from exc


def _edit_config(
    at: Address, thread_id: str, graph_id: str, head: StateSnapshot
) -> tuple[RunnableConfig, bool]:
    """Returns the config to edit at, and whether the edit forks.

    An edited head keeps its lineage: a node that waits for an answer keeps the keys of what it did before.
    """
    head_id = head.config.get("configurable", {}).get("checkpoint_id")
    metadata: dict[str, Any] = {"graph_id": graph_id}
    forks = at.checkpoint_id is not None and at.checkpoint_id != head_id
    if not forks and head.metadata is not None:
        lineage = cast("Mapping[str, Any]", head.metadata)
        metadata.update({key: lineage[key] for key in (ORIGIN, VISIT) if key in lineage})
    return at.config(thread_id, metadata), forks


async def _edit(
    graph: AnyGraph, config: RunnableConfig, updates: Sequence[Sequence[StateUpdate]]
) -> dict[str, Any]:
    try:
        edited = await graph.abulk_update_state(config, updates)
    except (InvalidUpdateError, EmptyInputError) as exc:
        raise BadUpdate(str(exc)) from None
    except (ValueError, TypeError, KeyError, NotImplementedError) as exc:
        raise Invalid(f"The graph does not take these values: {type(exc).__name__}: {exc}") from None
    return dict(edited.get("configurable", {}))
