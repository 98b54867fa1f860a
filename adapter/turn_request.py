"""Owns the reading of a turn's request: what its body asks LangGraph for.

The body was validated by the API; here it becomes LangGraph's config, input, command and answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Send

from adapter._pregel import AnyGraph, recursion_limit_of
from adapter.store.turns import TurnRow
from adapter.tap import Asked
from adapter.user import AuthUser, configured, without_user

# Read once: the package's metadata is a file, and each step of a turn asks.
LANGGRAPH_VERSION = version("langgraph")


def recursion_limit(turn: TurnRow, graph: AnyGraph) -> int:
    """Returns the supersteps the turn may run: as its request says, or its graph, or LangGraph."""
    given = cast("Mapping[str, Any]", turn.request.get("config") or {}).get("recursion_limit")
    return int(given) if given else recursion_limit_of(graph)


def base_config(turn: TurnRow) -> RunnableConfig:
    """Returns the run's config as LangGraph's server fills it in: ids in `configurable` and `metadata`."""
    given = cast("Mapping[str, Any]", turn.request.get("config") or {})
    ids = {"run_id": turn.turn_id, "graph_id": turn.graph_id, "assistant_id": turn.assistant_id}
    configurable = {
        k: v
        for k, v in without_user(given.get("configurable") or {}).items()
        if not k.startswith("__") and k not in ("checkpoint_id", "checkpoint_ns", "checkpoint_map")
    }
    user = cast("Mapping[str, Any] | None", turn.request.get("user"))
    if user is not None:
        configurable.update(configured(AuthUser(user)))
    config: RunnableConfig = {
        "configurable": {**configurable, **ids, "thread_id": turn.thread_id, "checkpoint_ns": ""},
        "metadata": {
            **cast("Mapping[str, Any]", given.get("metadata") or {}),
            **turn.metadata,
            **ids,
            "thread_id": turn.thread_id,
            "created_by": "system",
            "run_attempt": 1,
            "langgraph_version": LANGGRAPH_VERSION,
        },
        "tags": list(given.get("tags") or []),
    }
    if given.get("run_name"):
        config["run_name"] = str(given["run_name"])
    if given.get("max_concurrency"):
        config["max_concurrency"] = int(given["max_concurrency"])
    return config


def asked(turn: TurnRow) -> Asked:
    """Returns which events the request wants; none for a caller who waits for its outcome and named none."""
    if turn.request.get("quiet"):
        return Asked(frozenset(), False)
    modes = turn.request.get("stream_mode") or ["values"]
    modes = [modes] if isinstance(modes, str) else modes
    return Asked(frozenset(modes), bool(turn.request.get("stream_subgraphs")))


def addressed(request: Mapping[str, Any]) -> str | None:
    """Returns the checkpoint that a request starts from, or None for the thread's latest."""
    checkpoint = cast("Mapping[str, Any]", request.get("checkpoint") or {})
    configurable = cast("Mapping[str, Any]", (request.get("config") or {}).get("configurable") or {})
    return (
        checkpoint.get("checkpoint_id") or request.get("checkpoint_id") or configurable.get("checkpoint_id")
    )


def starts_over(request: Mapping[str, Any]) -> bool:
    """Whether a request brings an input to the graph's start, at the thread's head."""
    return request.get("input") is not None and not request.get("command") and addressed(request) is None


def input_of(turn: TurnRow) -> tuple[Any, bool]:
    """Returns LangGraph's input and whether it continues what the thread's last turn left open."""
    command = cast("Mapping[str, Any] | None", turn.request.get("command"))
    if command:
        made = command_of(command)
        if made is not None:
            return made, True
    given = turn.request.get("input")
    return given, given is None


def command_of(body: Mapping[str, Any]) -> Command[Any] | None:
    """Returns the client's command; None when it says nothing."""
    update = body.get("update")
    if isinstance(update, list):
        update = [tuple(cast("list[Any]", pair)) for pair in cast("list[Any]", update)]
    goto = body.get("goto")
    targets: list[Any] = cast("list[Any]", goto) if isinstance(goto, list) else [goto] if goto else []
    made = [_target(t) for t in targets]
    resume = body.get("resume")
    if update is None and not made and resume is None:
        return None
    return Command(update=update, goto=cast("Any", made), resume=resume)


def _target(target: Any) -> Any:
    if isinstance(target, Mapping):
        named = cast("Mapping[str, Any]", target)
        return Send(str(named["node"]), named.get("input"))
    return target


def resume_map(
    command: Command[Any], pending: list[str]
) -> tuple[Mapping[str, Any] | None, Command[Any] | None]:
    """Turns the answer into a map of interrupt id to value, and returns it with what is left of the command.

    A scalar answer would be stored as a pending write and answer the next question, too, once the graph is
    entered again.

    Raises:
        RuntimeError: a scalar answer, and several interrupts wait.
    """
    resume = command.resume
    rest = Command(update=command.update, goto=command.goto) if command.update or command.goto else None
    if isinstance(resume, Mapping) and resume and all(_is_interrupt_id(k) for k in cast("Any", resume)):
        return cast("Mapping[str, Any]", resume), rest
    if len(pending) > 1:
        raise RuntimeError(
            "When there are multiple pending interrupts, you must specify the interrupt id when resuming. "
            "Docs: https://docs.langchain.com/oss/python/langgraph/interrupts#handling-multiple-interrupts."
        )
    if not pending:
        # Nothing waits yet (a static breakpoint, a state that a client wrote): LangGraph keeps the answer for the
        # first question that is asked.
        return None, command
    return {pending[0]: resume}, rest


def _is_interrupt_id(key: object) -> bool:
    return isinstance(key, str) and len(key) == 32 and all(c in "0123456789abcdef" for c in key)
