"""Owns the gate: LangGraph runs itself, and each effect node asks before it starts.

`gated()` copies a compiled graph with every node wrapped. Inside an activity the wrappers consult the `Gate` of
that activity: an effect it may not run is noted in the frontier and raises `Suspended`, which LangGraph treats
like any bubble-up (siblings go on, the task writes nothing, no retry and no error handler fires).
It must not know Temporal, the database or the wire. Next: `adapter/engine.py` runs a graph behind it.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.errors import ErrorCode, GraphBubbleUp, GraphInterrupt, create_error_message
from langgraph.runtime import Runtime
from langgraph.types import Interrupt, RetryPolicy

from adapter import _pregel
from adapter._pregel import AnyGraph, OpenTask, TaskFacts
from adapter.cancelling import being_cancelled, outlast
from adapter.keys import Place
from adapter.node_threads import NodeRun, node_run
from adapter.policy import NodePolicy, policy_of

T = TypeVar("T")


class Suspended(GraphBubbleUp):
    """An effect wants to start and this activity may not run it."""


class RetryLater(GraphBubbleUp):
    """A node failed with an exception its retry policy covers; the next attempt is another activity attempt.

    It is a bubble-up, so LangGraph stores no error for the task and no error handler fires.
    """

    def __init__(self, node: str, error: Exception, delay_seconds: float) -> None:
        super().__init__(f"{node}: {type(error).__name__}")
        self.node = node
        self.error = error
        self.delay_seconds = delay_seconds


class Lineage(Protocol):
    """What the gate asks about checkpoints; the fenced saver answers."""

    def visit(self, ns: str, checkpoint_id: str) -> int:
        """Returns the supersteps that the origin turn completed in `ns` before this checkpoint."""
        ...

    def made_by(self, ns: str) -> str | None:
        """Returns the turn that wrote the newest checkpoint of `ns` that was loaded."""
        ...

    def open_task(self, ns: str, task_id: str) -> OpenTask | None:
        """Returns what the loaded checkpoint's pending writes say about a task."""
        ...

    def limit(self, ns: str, task_ids: frozenset[str]) -> None:
        """Shows only these tasks' pending writes when `ns` is loaded."""
        ...

    async def entered(self, ns: str, parent_ns: str, parent_checkpoint_id: str) -> bool:
        """Whether the graph at `ns` was entered before in its parent's present superstep."""
        ...


@dataclass(frozen=True, slots=True)
class FrontierEntry:
    """An effect that wants to start.

    Attributes:
        task_id: LangGraph's own id of the task.
        node: the node's name.
        within: task ids of the subgraph nodes around it, from the root down.
        label: path of node names, as a person reads it.
        options: what its activity needs beyond the defaults (see `adapter/policy.py`).
    """

    task_id: str
    node: str
    within: tuple[str, ...]
    label: str
    options: Mapping[str, float | int | str] = field(default_factory=dict[str, "float | int | str"])


@dataclass(slots=True)
class RunningEffect:
    """The effect node that runs in the present context; what `adapter/effects.py` derives keys from."""

    gate: Gate
    label: str
    path: tuple[TaskFacts, ...]
    used: dict[str, int] = field(default_factory=dict[str, int])

    def places(self) -> tuple[Place, ...]:
        """Returns the path with each level's visit."""
        lineage = self.gate.lineage
        return tuple(
            Place(t.node, t.send_index, lineage.visit(t.parent_ns, t.parent_checkpoint_id)) for t in self.path
        )


GATE: contextvars.ContextVar[Gate | None] = contextvars.ContextVar("turns_gate", default=None)
RUNNING: contextvars.ContextVar[RunningEffect | None] = contextvars.ContextVar("turns_running", default=None)
_PATH: contextvars.ContextVar[tuple[TaskFacts, ...]] = contextvars.ContextVar("turns_path", default=())


@dataclass(slots=True)
class Gate:
    """What one activity may run, and what it found.

    Attributes:
        turn_id: the running turn.
        allow: task ids of the effects this activity runs.
        branches: task-id paths that this activity is limited to; `((),)` is the whole graph. A limited run
            suspends at every node outside its branches, so it never finishes a superstep it shares (I6).
        first: node and superstep of the effect that the turn starts with, if this activity runs it, too.
        held: tasks that stopped at an interrupt in this turn; they raise it again instead of running.
        attempt: this activity's attempt, from 1.
        stop: last superstep the turn may run in the root graph (one recursion budget a turn).
        limit: supersteps the turn may run. An entry is given what is left of them; a graph that a node invokes, all.
        lineage: what is known of the checkpoints.
        on_breakpoint: called with the task id of a subgraph that stopped at a static breakpoint.
        on_start: called with the checkpoint namespace of each task, before its node runs.
        on_first: called before the effect that the turn starts with; the checkpoint it starts from is durable when it
            returns.
        on_suspend: called with an effect that this activity may not run, behind the subgraph nodes around it; returns
            whether the activity that may has come (see `adapter/parked.py`).
        context: context variables of the activity that has come, as far as they differ from those of the first.
        answers: interrupt id to answer, as this turn gives them.
        first_attempt_at: Unix time of the first attempt, if known.
        heartbeat: what `Runtime.heartbeat` calls, too.
        running: nodes under way.
    """

    turn_id: str
    allow: frozenset[str]
    branches: tuple[tuple[str, ...], ...]
    held: frozenset[str]
    attempt: int
    stop: int
    limit: int
    lineage: Lineage
    on_breakpoint: Callable[[str], Awaitable[None]]
    on_start: Callable[[str], Awaitable[None]]
    on_first: Callable[[TaskFacts], Awaitable[None]]
    on_suspend: Callable[[Sequence[TaskFacts]], Awaitable[bool]] | None = None
    context: Mapping[contextvars.ContextVar[Any], Any] = field(
        default_factory=dict[contextvars.ContextVar[Any], Any]
    )
    first: tuple[str, int] | None = None
    answers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    first_attempt_at: float | None = None
    heartbeat: Callable[[], None] | None = None
    frontier: dict[str, FrontierEntry] = field(default_factory=dict[str, FrontierEntry])
    interrupted: set[str] = field(default_factory=set[str])
    entered_before: dict[str, bool] = field(default_factory=dict[str, bool])
    out_of_steps: bool = False
    raised_again: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    held_again: set[str] = field(default_factory=set[str])
    running: set[NodeRun] = field(default_factory=set[NodeRun])

    async def close(self) -> None:
        """Waits for the nodes of a cancelled attempt: LangGraph leaves one that has a `timeout` behind."""
        if being_cancelled():
            await outlast(*(asyncio.ensure_future(run.ended.wait()) for run in self.running))

    def goes_on(
        self,
        *,
        allow: frozenset[str],
        held: frozenset[str],
        first_attempt_at: float | None,
        heartbeat: Callable[[], None] | None,
        context: Mapping[contextvars.ContextVar[Any], Any],
    ) -> None:
        """Lets the next activity of the turn run its effect, as its first attempt; see the attributes."""
        self.allow, self.held, self.attempt = allow, self.held | held, 1
        self.first_attempt_at, self.heartbeat, self.context = first_attempt_at, heartbeat, context
        for task_id in allow:
            self.frontier.pop(task_id, None)

    async def allows(self, task: TaskFacts) -> bool:
        """Whether this activity runs an effect."""
        if task.task_id in self.allow:
            return True
        if self.first != (task.node, task.step) or task.parent_ns or task.send_index is not None:
            return False
        await self.on_first(task)
        return True

    def admit(self, task: TaskFacts) -> bool:
        """Whether a task lies inside the branches (True) or on the way to one (False).

        Raises:
            Suspended: it lies outside.
            GraphInterrupt: it stopped at this interrupt earlier in the turn.
        """
        path = (*(t.task_id for t in _PATH.get()), task.task_id)
        inside = any(path[: len(branch)] == branch for branch in self.branches)
        if not inside and not any(branch[: len(path)] == path for branch in self.branches):
            raise Suspended(task.node)
        known = self.lineage.open_task(task.parent_ns, task.task_id)
        if task.task_id in self.held or self._asked_before(known):
            interrupts: tuple[Interrupt[Any], ...] = known.interrupts if known else ()
            self.raised_again.update((task.parent_ns, i.id) for i in interrupts)
            self.held_again.add(task.task_id)
            self.interrupted.add(task.task_id)
            raise GraphInterrupt(interrupts)
        if not task.parent_ns and task.step > self.stop:
            # A re-entered loop cannot be asked for less than one superstep; what it starts beyond is not run.
            self.out_of_steps = True
            raise Suspended(task.node)
        return inside

    def _asked_before(self, known: OpenTask | None) -> bool:
        """Whether an earlier attempt of this activity got as far as a question that is not answered.

        Running the task again would let LangGraph answer it with the answer to the question before.
        """
        waits = self.attempt > 1 and known is not None and bool(known.interrupts)
        return waits and known is not None and not any(i.id in self.answers for i in known.interrupts)

    async def stopped(self, task: TaskFacts, interrupt: GraphInterrupt) -> None:
        """Notes that a task stopped at an interrupt, or at a static breakpoint inside it; durable when it returns."""
        self.interrupted.add(task.task_id)
        if not interrupt.args or not interrupt.args[0]:
            await self.on_breakpoint(task.task_id)

    def enter(self, ns: str, path: tuple[str, ...]) -> None:
        """Limits the subgraph at `ns` to this activity's branches, if they part inside it."""
        roots = frozenset(b[-1] for b in self.branches if b and b[:-1] == path)
        if roots:
            self.lineage.limit(ns, roots)

    def suspend(self, task: TaskFacts, policy: NodePolicy) -> Suspended:
        """Notes an effect that wants to start and returns what to raise."""
        around = _PATH.get()
        self.frontier[task.task_id] = FrontierEntry(
            task.task_id,
            task.node,
            tuple(t.task_id for t in around),
            _place((*around, task)),
            policy.options,
        )
        return Suspended(task.node)

    def prepare(self, task: TaskFacts, config: RunnableConfig) -> RunnableConfig:
        """Returns the config an admitted effect runs with."""
        # A task that runs for the first time must not be told that it resumes; one that is retried, or goes on
        # after an interrupt, an error or a cancelled turn, must.
        if (
            self.attempt == 1
            and self.lineage.open_task(task.parent_ns, task.task_id) is None
            and self.lineage.made_by(task.parent_ns) == self.turn_id
        ):
            config = _pregel.without_resuming(config)
        return self.told(task, config)

    def told(self, task: TaskFacts, config: RunnableConfig) -> RunnableConfig:
        """Returns the config with a `Runtime` that tells of Temporal's attempt and heartbeat, and the turn's limit."""
        return _pregel.with_runtime(self.limited(task, config), self._runtime)

    def limited(self, task: TaskFacts, config: RunnableConfig) -> RunnableConfig:
        """Returns the config as plain LangGraph would give it to the task: with the limit of the whole turn."""
        return config if task.parent_ns else _pregel.with_limit(config, self.limit)

    def _runtime(self, runtime: Runtime[Any]) -> Runtime[Any]:
        if runtime.execution_info is not None:
            runtime = runtime.patch_execution_info(
                node_attempt=self.attempt,
                run_id=self.turn_id,
                node_first_attempt_time=self.first_attempt_at
                or runtime.execution_info.node_first_attempt_time,
            )
        if self.heartbeat is None:
            return runtime
        ours, theirs = self.heartbeat, runtime.heartbeat

        def both() -> None:
            theirs()
            ours()

        return runtime.override(heartbeat=both)


def recursion_message(limit: int) -> str:
    """Returns LangGraph's text of the error for a turn that used up its supersteps."""
    return create_error_message(
        message=f"Recursion limit of {limit} reached without hitting a stop condition. "
        "You can increase the limit by setting the `recursion_limit` config key.",
        error_code=ErrorCode.GRAPH_RECURSION_LIMIT,
    )


class _Wrapper(Runnable[Any, Any]):
    """Stands before what a node runs."""

    def __init__(self, name: str, inner: Runnable[Any, Any], policy: NodePolicy) -> None:
        self.name = name
        self.inner = inner
        self.policy = policy

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Refuses: the gate is for asynchronous runs."""
        raise RuntimeError("a gated graph runs with astream or ainvoke only")

    async def run(
        self, gate: Gate, path: Sequence[TaskFacts], input: Any, config: RunnableConfig, **kwargs: Any
    ) -> Any:
        """Runs the node itself; it is over when its threads are.

        Raises:
            CancelledError: it was cancelled, whatever exception it made of that.
        """
        for variable, value in gate.context.items():
            variable.set(value)
        await gate.on_start(str(config.get("configurable", {})["checkpoint_ns"]))
        try:
            async with node_run(_place(path), gate.running):
                return await self.inner.ainvoke(input, config, **kwargs)
        except GraphInterrupt as exc:
            await gate.stopped(path[-1], exc)
            raise
        except GraphBubbleUp:
            raise
        except Exception as exc:
            if being_cancelled():
                raise asyncio.CancelledError from exc
            raise


class Inline(_Wrapper):
    """A pure node: runs whenever LangGraph starts it, unless it lies outside this activity's branches."""

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Runs the node."""
        gate = GATE.get()
        if gate is not None and config is not None:
            task = _pregel.task_of(config)
            gate.admit(task)
            return await self.run(gate, (*_PATH.get(), task), input, gate.told(task, config), **kwargs)
        return await self.inner.ainvoke(input, config, **kwargs)


class Effect(_Wrapper):
    """An effect node: runs only in the activity that was scheduled for it."""

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Runs the node if this activity may; else notes it in the frontier and suspends."""
        gate = GATE.get()
        if gate is None or config is None:
            return await self.inner.ainvoke(input, config, **kwargs)
        task = _pregel.task_of(config)
        gate.admit(task)
        path = (*_PATH.get(), task)
        if not await gate.allows(task):
            suspended = gate.suspend(task, self.policy)
            # One with a task queue of its own runs elsewhere.
            if gate.on_suspend is None or "queue" in self.policy.options or not await gate.on_suspend(path):
                raise suspended
        token = RUNNING.set(RunningEffect(gate, _place(path), path))
        try:
            return await self.run(gate, path, input, gate.prepare(task, config), **kwargs)
        finally:
            RUNNING.reset(token)


class Subgraph(_Wrapper):
    """A node that is a compiled graph: entered again and again until all effects inside it are done."""

    def __init__(self, name: str, inner: AnyGraph, policy: NodePolicy) -> None:
        super().__init__(name, inner, policy)
        self.keeps_history = inner.checkpointer is True

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Enters the subgraph, telling it whether it goes on or takes new input."""
        gate = GATE.get()
        if gate is None or config is None:
            return await self.inner.ainvoke(input, config, **kwargs)
        task = _pregel.task_of(config)
        gate.admit(task)
        ns = str(config.get("configurable", {})["checkpoint_ns"])
        if self.keeps_history:  # one history a thread, under the namespace without task ids
            ns = "|".join(part.split(":")[0] for part in ns.split("|"))
        before = await gate.lineage.entered(ns, task.parent_ns, task.parent_checkpoint_id)
        gate.entered_before[ns] = before
        if not before:
            config = _pregel.without_resuming(config)
        path = (*_PATH.get(), task)
        gate.enter(ns, tuple(t.task_id for t in path))
        config = gate.limited(task, config)
        token = _PATH.set(path)
        try:
            return await self.inner.ainvoke(input, config, **kwargs)
        except GraphInterrupt as exc:
            await gate.stopped(task, exc)
            raise
        finally:
            _PATH.reset(token)


def _place(path: Sequence[TaskFacts]) -> str:
    """Returns a path as a person reads it."""
    return "/".join(_label(task) for task in path)


def _label(task: TaskFacts) -> str:
    return task.node if task.send_index is None else f"{task.node}[{task.send_index}]"


def gated(graph: AnyGraph, inherited: Sequence[RetryPolicy] = ()) -> AnyGraph:
    """Returns a copy of `graph` whose nodes ask the gate; `graph` itself is left as it was.

    Args:
        graph: a compiled graph.
        inherited: retry policies of the subgraph node around it.

    Raises:
        ConfigError: a node's `durable` metadata is not understood.
    """
    wrapped: dict[str, tuple[Runnable[Any, Any], dict[str, Any]]] = {}
    for name, facts in _pregel.nodes_of(graph).items():
        policy = policy_of(facts, inherited)
        bound = _pregel.guarded(_pregel.bound_of(graph, name))
        if policy.kind == "inline":
            # Inline nodes run within an activity, where LangGraph's own retries are cheap: they are kept.
            wrapped[name] = (Inline(name, bound, policy), {"retry_policy": policy.retry or None})
        elif policy.kind == "effect":
            hook = RetryPolicy(max_attempts=1, retry_on=_decide(name, policy), jitter=False)
            wrapped[name] = (Effect(name, bound, policy), {"retry_policy": (hook,)})
        else:
            assert facts.subgraph is not None
            inner = gated(facts.subgraph, policy.retry)
            wrapped[name] = (
                Subgraph(name, inner, policy),
                {"retry_policy": None, "subgraphs": [inner]},
            )
    return _pregel.replace_nodes(graph, wrapped)


def _decide(name: str, policy: NodePolicy) -> Callable[[Exception], bool]:
    """Returns the `retry_on` of a gated effect: LangGraph asks it about every exception of the node.

    Answering "no" lets LangGraph fail the task as it always does; raising `RetryLater` instead takes the
    exception away from LangGraph, so that only Temporal retries (never both).
    """

    def retry_on(exc: Exception) -> bool:
        gate = GATE.get()
        if gate is None:
            return False
        delay = policy.retry_delay(exc, gate.attempt)
        if delay is not None:
            raise RetryLater(name, exc, delay)
        return False

    return retry_on
