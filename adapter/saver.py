"""Owns the fenced saver: LangGraph's PostgreSQL saver, whose writes go through the attempt's writer.

Reads come from the pool. Writes run LangGraph's own saver on the connection of a transaction that has checked the
claim, which needs no private API. Besides, it remembers what it loaded, which is how the gate learns about
lineage: visits, open tasks, who wrote a checkpoint.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

from adapter import _pregel, warm
from adapter._pregel import OpenTask
from adapter.store import node_errors
from adapter.store.pool import Connection, Pool, store_errors
from adapter.warm import Values
from adapter.writer import FencedWriter

# Of checkpoints that hold what they need themselves; LangGraph's saver completes older ones from their parents.
_VERSION = 4
# A node's result, the checkpoint that follows and the turn's end come within this time of one another.
_LINGER = 0.005
ORIGIN = "turns_origin"
VISIT = "turns_visit"


@dataclass(frozen=True, slots=True)
class Head:
    """What the saver remembers of the checkpoint a graph loaded.

    Attributes:
        checkpoint_id: its id.
        metadata: as stored.
        tasks: what its pending writes say, by task id (before any were hidden).
    """

    checkpoint_id: str
    metadata: Mapping[str, Any]
    tasks: Mapping[str, OpenTask]


class _Ridden:
    """The pipeline that the writer's transaction is: LangGraph's saver would wait for the server after each write."""

    async def sync(self) -> None:
        """Leaves it to the end of the transaction."""


class FencedSaver(BaseCheckpointSaver[str]):
    """A checkpointer for one attempt.

    Args:
        pool: for reads.
        writer: the attempt's writer; None for a saver that only reads.
        hide: as `limit`: (checkpoint namespace, task ids): in this namespace only these tasks' pending writes
            are shown, so that a branch-limited run cannot finish a superstep it shares (I6).
        beside: tasks of the same superstep that other branches run. LangGraph would start and suspend each of them for
            each branch; it is told that they have ended, all but one, which keeps the superstep open.
        values: what is known of the thread's channel values; the attempt adds what it reads and stores.
    """

    def __init__(
        self,
        pool: Pool,
        writer: FencedWriter | None = None,
        *,
        hide: tuple[str, frozenset[str]] | None = None,
        beside: frozenset[str] = frozenset(),
        values: Values | None = None,
    ) -> None:
        self._reader = AsyncPostgresSaver(cast("Any", pool))
        super().__init__(serde=self._reader.serde)
        self._pool = pool
        self._writer = writer
        self.values: Values = {} if values is None else values
        self._origin = ""
        self._hide = hide
        self._ended = frozenset(sorted(beside - hide[1])[1:]) if hide is not None else frozenset[str]()
        self._heads: dict[str, Head] = {}
        self._asked: set[str] = set()
        self._visits: dict[tuple[str, str], tuple[str, int]] = {}
        self._peeked: dict[str, CheckpointTuple | None] = {}
        self._first_write: Callable[[Connection], Any] | None = None
        self._loop = asyncio.get_running_loop()
        self.last_step = -2
        self.root_head: str | None = None

    def carries(self, origin: str, on_first_write: Callable[[Connection], Any] | None = None) -> None:
        """Says what is written.

        Args:
            origin: the turn that keys are derived from; checkpoints count its supersteps.
            on_first_write: what is stored together with the first checkpoint or writes.
        """
        self._origin = origin
        self._first_write = on_first_write

    # ------------------------------------------------------------ lineage

    def head(self, ns: str) -> Head | None:
        """Returns what was loaded for a namespace, or None."""
        return self._heads.get(ns)

    def put_back(self, ns: str) -> int:
        """Returns how many tasks LangGraph was told of as ended when it loaded `ns`, and shows the results of again."""
        head = self._heads.get(ns)
        ended = {task_id for task_id, task in head.tasks.items() if task.finished} if head else set[str]()
        if self._hide is not None and ns == self._hide[0]:
            ended &= self._hide[1]
            return len(ended) + (0 if ns else len(self._ended))
        return len(ended)

    def serves(self, ns: str) -> bool:
        """Whether the graph at `ns` keeps its checkpoints here."""
        return ns in self._asked

    def limit(self, ns: str, task_ids: frozenset[str]) -> None:
        """Shows only these tasks' pending writes when `ns` is loaded."""
        self._hide = (ns, task_ids)

    def visit(self, ns: str, checkpoint_id: str) -> int:
        """Returns the supersteps that the origin turn completed in `ns` before this checkpoint."""
        origin, count = self._visits.get((ns, checkpoint_id), ("", 0))
        return count if origin == self._origin else 0

    def made_by(self, ns: str) -> str | None:
        """Returns the turn that wrote the checkpoint loaded for `ns`."""
        head = self._heads.get(ns)
        return None if head is None else head.metadata.get("run_id")

    def open_task(self, ns: str, task_id: str) -> OpenTask | None:
        """Returns what the loaded checkpoint's pending writes say about a task, or None."""
        head = self._heads.get(ns)
        return None if head is None else head.tasks.get(task_id)

    async def entered(self, ns: str, parent_ns: str, parent_checkpoint_id: str) -> bool:
        """Whether the graph at `ns` was entered before in its parent's present superstep.

        Each checkpoint of a subgraph names the checkpoint its parent had at the time.
        """
        config: RunnableConfig = {"configurable": {"thread_id": self._thread_id(), "checkpoint_ns": ns}}
        # The subgraph's loop asks for the same head right after this.
        found = self._peeked[ns] = await self._read(config)
        if found is None:
            return False
        parents: Mapping[str, Any] = cast("Any", found.metadata).get("parents") or {}
        return parents.get(parent_ns) == parent_checkpoint_id

    async def peek(self, thread_id: str) -> CheckpointTuple | None:
        """Returns the thread's head, which LangGraph will ask for next."""
        found = self._peeked[""] = await self._read(
            {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
        )
        return found

    def is_new(self) -> None:
        """Says that the thread has no checkpoint yet, which saves asking."""
        self._peeked[""] = None

    def _thread_id(self) -> str:
        assert self._writer is not None
        return self._writer.claim.thread_id

    async def _read(self, config: RunnableConfig) -> CheckpointTuple | None:
        conf = config.get("configurable", {})
        ns = str(conf.get("checkpoint_ns", ""))
        found = None
        await self._flush()
        async with store_errors():
            if self.values and not conf.get("checkpoint_id"):
                found = await warm.load(self._pool, self.serde, str(conf["thread_id"]), ns, self.values)
                if found is None:
                    return None
            if found is None or found.checkpoint["v"] < _VERSION:
                found = await self._reader.aget_tuple(config)
        if self._writer is not None and found is not None and found.checkpoint["v"] >= _VERSION:
            warm.note(
                self.values, ns, found.checkpoint["channel_versions"], found.checkpoint["channel_values"]
            )
        return found

    async def _flush(self) -> None:
        """Has PostgreSQL know what this saver was given."""
        if self._writer is not None:
            await self._writer.flush()

    def _remember(self, found: CheckpointTuple, *, addressed: bool) -> None:
        conf = found.config.get("configurable", {})
        ns, checkpoint_id = str(conf.get("checkpoint_ns", "")), str(conf["checkpoint_id"])
        metadata = cast("Mapping[str, Any]", found.metadata)
        if not ns:
            self.last_step = int(metadata.get("step", -2))
            self.root_head = checkpoint_id
        self._visits[ns, checkpoint_id] = (str(metadata.get(ORIGIN, "")), int(metadata.get(VISIT, 0)))
        if not addressed or ns not in self._heads:
            self._heads[ns] = Head(checkpoint_id, metadata, _pregel.open_tasks(found.pending_writes))

    # ------------------------------------------------------------ reads

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Loads a checkpoint, as LangGraph's saver does."""
        conf = config.get("configurable", {})
        ns = str(conf.get("checkpoint_ns", ""))
        self._asked.add(ns)
        addressed = bool(conf.get("checkpoint_id"))
        known = ns in self._peeked
        found = self._peeked.pop(ns, None)
        if addressed or not known:
            found = await self._read(config)
        if found is None:
            return None
        self._remember(found, addressed=addressed)
        found = _plain(found)
        if failed := _pregel.tasks_with_handled_errors(found.pending_writes):
            errors = await node_errors.load(self._pool, str(conf["thread_id"]), failed)
            found = found._replace(pending_writes=_pregel.with_errors(found.pending_writes, errors))
        if self._hide is not None and ns == self._hide[0]:
            shown = {*self._hide[1], _pregel.NULL_TASK}
            writes = [w for w in found.pending_writes or [] if w[0] in shown]
            ended = () if ns else map(_pregel.without_result, self._ended)
            return found._replace(pending_writes=[*writes, *ended])
        return found

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Lists checkpoints, newest first, as LangGraph's saver does."""
        await self._flush()
        async with store_errors():
            async for found in self._reader.alist(config, filter=filter, before=before, limit=limit):
                yield _plain(found)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Reads the writes that delta channels are rebuilt from."""
        await self._flush()
        async with store_errors():
            return await self._reader.aget_delta_channel_history(config=config, channels=channels)

    # ------------------------------------------------------------ writes

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Has a checkpoint stored under the attempt's claim, together with what else is stored in this moment.

        Raises:
            StaleAttempt: a newer attempt holds the claim.
        """
        conf = config.get("configurable", {})
        ns = str(conf.get("checkpoint_ns", ""))
        parent_origin, count = self._visits.get((ns, str(conf.get("checkpoint_id") or "")), ("", 0))
        if parent_origin != self._origin:
            count = 0
        elif metadata.get("source") == "loop":
            count += 1
        self._visits[ns, checkpoint["id"]] = (self._origin, count)
        if not ns:
            self.last_step = int(metadata.get("step", -2))
            self.root_head = checkpoint["id"]
        counted = cast("CheckpointMetadata", {**metadata, ORIGIN: self._origin, VISIT: count})

        async def run(saver: AsyncPostgresSaver) -> None:
            await saver.aput(config, checkpoint, counted, new_versions)

        warm.note(self.values, ns, new_versions, checkpoint["channel_values"])
        self._write(run, ("checkpoint", ns, checkpoint["id"]))
        return {
            "configurable": {
                "thread_id": conf["thread_id"],
                "checkpoint_ns": ns,
                "checkpoint_id": checkpoint["id"],
            }
        }

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Has a task's writes stored under the attempt's claim, together with what else is stored in this moment.

        Raises:
            StaleAttempt: a newer attempt holds the claim.
        """

        async def run(saver: AsyncPostgresSaver) -> None:
            await saver.aput_writes(config, writes, task_id, task_path)

        handled = _pregel.handled_error(writes)
        self._write(run, ("task", task_id), error=(task_id, handled) if handled else None)

    def _write(
        self,
        run: Callable[[AsyncPostgresSaver], Any],
        provides: tuple[str, ...],
        error: tuple[str, BaseException] | None = None,
    ) -> None:
        """Queues an operation: whoever needs it stored, or reads what it stores, waits for it."""
        if self._writer is None:
            raise RuntimeError("this saver only reads")
        first, self._first_write = self._first_write, None

        async def operation(conn: Connection) -> None:
            if first is not None:
                await first(conn)
            await run(AsyncPostgresSaver(cast("Any", conn), cast("Any", _Ridden()), self.serde))
            if error is not None:
                await node_errors.store(conn, self._thread_id(), *error)

        self._writer.queue(operation, provides=provides, linger=_LINGER)

    async def adelete_thread(self, thread_id: str) -> None:
        """Deletes a thread's checkpoints under the attempt's claim."""

        async def run(saver: AsyncPostgresSaver) -> None:
            await saver.adelete_thread(thread_id)

        self._write(run, ("delete", thread_id))

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Returns the next version of a channel, as LangGraph's saver does."""
        return self._reader.get_next_version(current, channel)

    # ------------------------------------------------------------ for graphs that a sync node invokes

    def _block(self, coro: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coro, self._loop).result()

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As `aget_tuple`, from another thread than the event loop's."""
        return self._block(self.aget_tuple(config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """As `alist`, from another thread than the event loop's."""

        async def collect() -> Any:
            return [c async for c in self.alist(config, filter=filter, before=before, limit=limit)]

        yield from self._block(collect())

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As `aput`, from another thread than the event loop's."""
        return self._block(self.aput(config, checkpoint, metadata, new_versions))

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """As `aput_writes`, from another thread than the event loop's."""
        self._block(self.aput_writes(config, writes, task_id, task_path))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """As `aget_delta_channel_history`, from another thread than the event loop's."""
        return self._block(self.aget_delta_channel_history(config=config, channels=channels))


def _plain(found: CheckpointTuple) -> CheckpointTuple:
    """Returns the checkpoint without our own metadata, which LangGraph would show in its streams."""
    kept = {k: v for k, v in cast("Mapping[str, Any]", found.metadata).items() if k not in (ORIGIN, VISIT)}
    return found._replace(metadata=cast("CheckpointMetadata", kept))
