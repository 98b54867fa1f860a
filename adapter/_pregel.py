"""The only module that uses private LangGraph and LangChain names; the rest sees plain functions and data.

Each use says which behaviour it relies on. `check()` is the tripwire: it fails with one readable line when an
installed version does not have what is used here.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tracers.event_stream import (
    _AstreamEventsCallbackHandler,  # pyright: ignore[reportPrivateUsage]
)
from langgraph._internal._config import DEFAULT_RECURSION_LIMIT
from langgraph._internal._constants import (
    CONFIG_KEY_CHECKPOINT_MAP,
    CONFIG_KEY_RESUME_MAP,
    CONFIG_KEY_RESUMING,
    CONFIG_KEY_RUNTIME,
    CONFIG_KEY_STREAM,
    CONFIG_KEY_TASK_ID,
    ERROR,
    ERROR_SOURCE_NODE,
    INTERRUPT,
    NO_WRITES,
    NULL_TASK_ID,
    PUSH,
)
from langgraph._internal._runnable import RunnableCallable
from langgraph.checkpoint.base import PendingWrite
from langgraph.constants import START
from langgraph.pregel import Pregel
from langgraph.pregel._messages import StreamMessagesHandler, graph_namespace
from langgraph.pregel._read import PregelNode
from langgraph.pregel._task_status import read_task_statuses
from langgraph.pregel.protocol import StreamChunk, StreamProtocol
from langgraph.runtime import Runtime
from langgraph.types import Interrupt, RetryPolicy

from adapter.errors import NodeExited

INTERRUPT_KEY = INTERRUPT
NULL_TASK = NULL_TASK_ID

AnyGraph = Pregel[Any, Any, Any, Any]


def without_result(task_id: str) -> PendingWrite:
    """Returns what a checkpoint's pending writes hold of a task that ended and wrote nothing."""
    return (task_id, NO_WRITES, None)


def check() -> None:
    """Fails when the installed LangGraph lacks what this module relies on.

    Raises:
        RuntimeError: with the version and what is missing.
    """
    missing = [
        f"{owner.__name__}.{name}"
        for owner, names in (
            (PregelNode, ("copy", "node", "flat_writers")),
            (Pregel, ("copy", "astream", "_resolve_checkpointer")),
            (StreamMessagesHandler, ("on_chain_start", "on_chat_model_start", "_emit")),
            (_AstreamEventsCallbackHandler, ("_send", "tap_output_aiter", "on_chain_start")),
        )
        for name in names
        if not hasattr(owner, name)
    ]
    if missing:
        from importlib.metadata import version

        raise RuntimeError(
            f"LangGraph {version('langgraph')} is not supported: it has no {', '.join(missing)}; "
            "install a version that pyproject.toml allows"
        )


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What the gate needs to know about one node of a compiled graph."""

    name: str
    metadata: Mapping[str, Any]
    retry: tuple[RetryPolicy, ...]
    timeout: Any
    subgraph: AnyGraph | None


def nodes_of(graph: AnyGraph) -> dict[str, NodeFacts]:
    """Returns the graph's nodes but for START, whose writes LangGraph applies itself."""
    facts: dict[str, NodeFacts] = {}
    for name, node in graph.nodes.items():
        if name == START:
            continue
        retry = tuple(node.retry_policy or graph.retry_policy or ())
        bound: Any = node.bound
        facts[name] = NodeFacts(
            name,
            dict(node.metadata or {}),
            retry,
            node.timeout,
            cast("AnyGraph", bound) if isinstance(bound, Pregel) else None,
        )
    return facts


def recursion_limit_of(graph: AnyGraph) -> int:
    """Returns the supersteps that a run of the graph has, unless its caller says otherwise.

    LangGraph's default is an int of a kind of its own, which gives way to the limit of a graph that a node invokes.
    """
    return (graph.config or {}).get("recursion_limit") or DEFAULT_RECURSION_LIMIT


def has_clock(graph: AnyGraph) -> bool:
    """Whether a superstep or a node of the graph, or of one in it, has a timeout, which runs from its start on."""
    nested: list[Any] = [
        sub for node in graph.nodes.values() for sub in cast("Sequence[Any]", node.subgraphs or ())
    ]
    return (
        graph.step_timeout is not None
        or any(node.timeout is not None for node in graph.nodes.values())
        or any(isinstance(sub, Pregel) and has_clock(cast("AnyGraph", sub)) for sub in nested)
    )


def bound_of(graph: AnyGraph, name: str) -> Runnable[Any, Any]:
    """Returns what the node runs."""
    return graph.nodes[name].bound


def guarded(bound: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """Returns what a node runs with `sys.exit` turned into an exception.

    asyncio passes `SystemExit` of any task on to the event loop, which ends: one node would take the whole worker and
    every turn on it along. Only a plain function (what `add_node` makes of one) is wrapped; it is copied, not changed.
    """
    if not isinstance(bound, RunnableCallable):
        return bound
    copied = copy.copy(bound)
    if bound.func is not None:
        copied.func = _without_exit(cast("Any", bound.func))
    if bound.afunc is not None:
        copied.afunc = _without_exit_async(cast("Any", bound.afunc))
    return copied


def _without_exit(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except (SystemExit, KeyboardInterrupt) as exc:
            raise NodeExited(f"the node tried to end its process: {type(exc).__name__}") from None

    return run


def _without_exit_async(call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(call)
    async def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return await call(*args, **kwargs)
        except (SystemExit, KeyboardInterrupt) as exc:
            raise NodeExited(f"the node tried to end its process: {type(exc).__name__}") from None

    return run


def replace_nodes(
    graph: AnyGraph, wrapped: Mapping[str, tuple[Runnable[Any, Any], dict[str, Any]]]
) -> AnyGraph:
    """Returns a copy of `graph` whose named nodes run another runnable; `graph` is left as it was.

    Args:
        graph: a compiled graph.
        wrapped: node name to (what it runs now, other attributes to replace).
    """
    nodes = dict(graph.nodes)
    for name, (bound, other) in wrapped.items():
        # `subgraphs` would be looked for in the wrapper and not be found: keep what LangGraph found before.
        kept: dict[str, Any] = {"subgraphs": list(cast("Sequence[Any]", nodes[name].subgraphs))}
        nodes[name] = nodes[name].copy({**kept, **other, "bound": bound})
    return copy_graph(graph, nodes=nodes, retry_policy=())


def copy_graph(graph: AnyGraph, **changes: Any) -> AnyGraph:
    """Returns a copy of a compiled graph with some attributes replaced.

    `Pregel.copy` passes every attribute to the constructor, which does not take the private ones.
    """
    private = {name: value for name, value in graph.__dict__.items() if name.startswith("_")}
    plain = {name: value for name, value in graph.__dict__.items() if name not in private}
    copied = graph.__class__(**{**plain, **changes})
    for name, value in private.items():
        if name != "__orig_class__":
            setattr(copied, name, value)
    return copied


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """One task, as its config tells: ids, place and what the runtime carries."""

    task_id: str
    node: str
    step: int
    send_index: int | None
    parent_ns: str
    parent_checkpoint_id: str
    metadata: Mapping[str, Any]


def task_of(config: RunnableConfig) -> TaskFacts:
    """Reads a task from the config LangGraph gives it."""
    conf = config.get("configurable", {})
    metadata = config.get("metadata", {})
    path = metadata.get("langgraph_path", ())
    ns = str(conf["checkpoint_ns"])
    parent_ns = ns.rpartition("|")[0]
    return TaskFacts(
        task_id=conf[CONFIG_KEY_TASK_ID],
        node=metadata["langgraph_node"],
        step=int(metadata["langgraph_step"]),
        send_index=int(path[1]) if len(path) > 1 and path[0] == PUSH and isinstance(path[1], int) else None,
        parent_ns=parent_ns,
        parent_checkpoint_id=conf.get(CONFIG_KEY_CHECKPOINT_MAP, {}).get(parent_ns, ""),
        metadata=metadata,
    )


def without_resuming(config: RunnableConfig) -> RunnableConfig:
    """Returns a config for a task that runs for the first time in a re-entered run.

    LangGraph tells every task of a resumed superstep that it resumes; a `checkpointer=True` graph called by a
    fresh task would then continue its previous turn instead of taking its new input. The config context
    variable is what such a call reads when the node does not pass its config on.
    """
    fresh = cast(
        "RunnableConfig",
        {**config, "configurable": {**config.get("configurable", {}), CONFIG_KEY_RESUMING: False}},
    )
    var_child_runnable_config.set(fresh)
    return fresh


def with_limit(config: RunnableConfig, limit: int) -> RunnableConfig:
    """Returns the config of a task with another recursion limit, also for what reads the context variable."""
    limited: RunnableConfig = {**config, "recursion_limit": limit}
    var_child_runnable_config.set(limited)
    return limited


def with_runtime(config: RunnableConfig, change: Callable[[Runtime[Any]], Runtime[Any]]) -> RunnableConfig:
    """Returns the config with its `Runtime` replaced, if it has one."""
    runtime = config.get("configurable", {}).get(CONFIG_KEY_RUNTIME)
    if not isinstance(runtime, Runtime):
        return config
    changed = change(cast("Runtime[Any]", runtime))
    return cast(
        "RunnableConfig",
        {**config, "configurable": {**config.get("configurable", {}), CONFIG_KEY_RUNTIME: changed}},
    )


def run_config(
    configurable: Mapping[str, Any],
    *,
    runtime: Runtime[Any],
    tap: Callable[[StreamChunk], None],
    modes: Iterable[str],
    resume_map: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Returns `configurable` for a run whose loops emit into `tap`, synchronously and in order.

    LangGraph gives this stream to every loop of the run, subgraphs included, next to the loop's own.
    """
    conf: dict[str, Any] = {
        **configurable,
        CONFIG_KEY_STREAM: StreamProtocol(tap, cast("Any", set(modes))),
        CONFIG_KEY_RUNTIME: runtime,
    }
    if resume_map:
        conf[CONFIG_KEY_RESUME_MAP] = dict(resume_map)
    return conf


@dataclass(frozen=True, slots=True)
class OpenTask:
    """What a checkpoint's pending writes say about one task."""

    finished: bool
    failed: bool
    interrupts: tuple[Interrupt[Any], ...]
    seen: bool = True


def open_tasks(pending_writes: Sequence[PendingWrite] | None) -> dict[str, OpenTask]:
    """Returns the status of each task that has pending writes, by task id."""
    return {
        task_id: OpenTask(bool(status.output), status.error is not None, status.pending_interrupts)
        for task_id, status in read_task_statuses(pending_writes or []).items()
    }


def handled_error(writes: Sequence[tuple[str, Any]]) -> BaseException | None:
    """Returns the exception that these writes hand to an error handler, if they do."""
    if not any(channel == ERROR_SOURCE_NODE for channel, _ in writes):
        return None
    return next((v for channel, v in writes if channel == ERROR and isinstance(v, BaseException)), None)


def tasks_with_handled_errors(pending_writes: Sequence[PendingWrite] | None) -> list[str]:
    """Returns the tasks whose error waits for, or went to, an error handler."""
    return [task_id for task_id, channel, _ in pending_writes or [] if channel == ERROR_SOURCE_NODE]


def with_errors(
    pending_writes: Sequence[PendingWrite] | None, errors: Mapping[str, BaseException]
) -> list[PendingWrite]:
    """Returns the writes with these tasks' errors put back as exceptions."""
    return [
        (task_id, channel, errors[task_id] if channel == ERROR and task_id in errors else value)
        for task_id, channel, value in pending_writes or []
    ]


class MessagesTap(StreamMessagesHandler):
    """Streams messages as LangGraph's own handler does, but into the run's tap, in order with the other events.

    LangGraph drops a handler that streams only its own graph from a root run; this one decides per event, so
    that both `stream_subgraphs` settings can use it.
    """

    def __init__(self, tap: Callable[[StreamChunk], None], *, subgraphs: bool, seen: set[int | str]) -> None:
        super().__init__(tap, True, parent_ns=())
        self._nested = subgraphs
        self.seen = seen

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[Any]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Follows a model call, unless it is nested and nested ones are not asked for."""
        if self._wants(metadata):
            return super().on_chat_model_start(
                serialized,
                messages,
                run_id=run_id,
                parent_run_id=parent_run_id,
                tags=tags,
                metadata=metadata,
                **kwargs,
            )
        return None

    def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: dict[str, Any],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Follows a node, unless it is nested and nested ones are not asked for."""
        if self._wants(metadata):
            return super().on_chain_start(
                serialized,
                inputs,
                run_id=run_id,
                parent_run_id=parent_run_id,
                tags=tags,
                metadata=metadata,
                **kwargs,
            )
        return None

    def _wants(self, metadata: dict[str, Any] | None) -> bool:
        if self._nested or not metadata or "langgraph_checkpoint_ns" not in metadata:
            return True
        return not graph_namespace(metadata)


class EventsTap(_AstreamEventsCallbackHandler):
    """Tells of everything that runs as `astream_events` (v2) does, but into the run's tap, in order with the rest.

    `astream_events` hands its events on through a queue, some ticks after the tokens that they tell of. LangGraph runs
    nodes with `astream` when it finds a handler of this kind, which makes models stream, too.
    """

    run_inline = True

    def __init__(self, tap: Callable[[StreamChunk], None]) -> None:
        super().__init__()
        self._tap = tap

    def _send(self, event: Any, event_type: str) -> None:
        self._tap(((), "events", event))
