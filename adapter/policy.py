"""Owns a node's policy: which nodes are effects, and how LangGraph's retry and timeout become an activity's options.

A node says so in its own metadata, `add_node(..., metadata={"durable": ...})`:
`"inline"` for a pure, cheap node; `"effect"` for a subgraph that shall run as one activity; or a mapping with any of
`heartbeat_timeout`, `start_to_close_timeout` (seconds), `task_queue`, `max_attempts` (of a lost worker).
Next: `adapter/gate.py`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, cast

from langgraph.types import RetryPolicy, TimeoutPolicy

from adapter._pregel import NodeFacts
from adapter.errors import ConfigError

Kind = Literal["effect", "inline", "subgraph"]
_KNOWN = {"heartbeat_timeout", "start_to_close_timeout", "task_queue", "max_attempts"}
_BACKSTOP_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class NodePolicy:
    """How a node runs.

    Attributes:
        kind: effect (an activity of its own), inline (within another's), subgraph (gated recursively).
        retry: LangGraph's policies for exceptions of the node; none means the first one fails the turn.
        options: what differs from the defaults, as the workflow reads it: `hb`, `stc` (seconds), `queue`, `attempts`.
    """

    kind: Kind
    retry: tuple[RetryPolicy, ...]
    options: dict[str, float | int | str]

    def retry_delay(self, exc: Exception, attempt: int) -> float | None:
        """Returns the seconds to wait before the next attempt, or None when `exc` ends the node.

        Follows LangGraph's RetryPolicy: the first policy that matches decides.

        Args:
            exc: what the node raised.
            attempt: this attempt, from 1.
        """
        for policy in self.retry:
            if not _matches(policy, exc):
                continue
            if attempt >= policy.max_attempts:
                return None
            seconds = min(
                policy.max_interval, policy.initial_interval * policy.backoff_factor ** (attempt - 1)
            )
            return seconds + random.uniform(0, 1) if policy.jitter else seconds  # noqa: S311 - jitter
        return None


def policy_of(facts: NodeFacts, inherited: Sequence[RetryPolicy] = ()) -> NodePolicy:
    """Reads a node's policy.

    Args:
        facts: the node.
        inherited: retry policies of the subgraph node around it, used when it has none itself.

    Raises:
        ConfigError: the node's `durable` metadata is not understood.
    """
    durable: object = facts.metadata.get("durable")
    options: dict[str, float | int | str] = {}
    if isinstance(durable, Mapping):
        options = _options(facts.name, cast("Mapping[str, object]", durable))
    elif durable not in (None, "inline", "effect"):
        raise ConfigError(
            f'node "{facts.name}": metadata "durable" is {durable!r}; '
            'use "inline", "effect" or a mapping of options'
        )
    if durable == "inline":
        return NodePolicy("inline", facts.retry, {})
    retry = facts.retry or tuple(inherited)
    if durable != "effect" and _can_be_gated(facts):
        return NodePolicy("subgraph", retry, {})
    _add_timeout(options, facts.timeout)
    return NodePolicy("effect", retry, options)


def _can_be_gated(facts: NodeFacts) -> bool:
    # Without a checkpointer a subgraph starts over each time it is entered, so it must run in one piece; a
    # timeout on the node spans all that is inside it, so it must, too.
    return facts.subgraph is not None and facts.subgraph.checkpointer is not False and facts.timeout is None


def _add_timeout(options: dict[str, float | int | str], timeout: object) -> None:
    # LangGraph's own timer ends the attempt on time (async nodes only, as LangGraph has it) and its error takes
    # the node's retry policy; the activity's timeout stands behind it for a node that blocks its event loop.
    if isinstance(timeout, TimeoutPolicy) and timeout.run_timeout is not None:
        seconds = timeout.run_timeout
        seconds = seconds.total_seconds() if isinstance(seconds, timedelta) else float(seconds)
        options.setdefault("stc", seconds + _BACKSTOP_SECONDS)


def _options(node: str, durable: Mapping[str, object]) -> dict[str, float | int | str]:
    if unknown := sorted(set(durable) - _KNOWN):
        raise ConfigError(
            f'node "{node}": metadata "durable" has no option {unknown[0]!r}; known: {sorted(_KNOWN)}'
        )
    options: dict[str, float | int | str] = {}
    for name, short in (("heartbeat_timeout", "hb"), ("start_to_close_timeout", "stc")):
        if (value := durable.get(name)) is not None:
            options[short] = _seconds(node, name, value)
    if (queue := durable.get("task_queue")) is not None:
        options["queue"] = str(queue)
    if (attempts := durable.get("max_attempts")) is not None:
        if not isinstance(attempts, int) or attempts < 1:
            raise ConfigError(f'node "{node}": max_attempts is {attempts!r}; use a whole number from 1')
        options["attempts"] = attempts
    return options


def _seconds(node: str, name: str, value: object) -> float:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if not isinstance(seconds, (int, float)) or seconds <= 0:
        raise ConfigError(f'node "{node}": {name} is {value!r}; use seconds above 0, or a timedelta')
    return float(seconds)


def _matches(policy: RetryPolicy, exc: Exception) -> bool:
    # As LangGraph's own `_should_retry_on`, which is private.
    retry_on: Any = policy.retry_on
    if isinstance(retry_on, Sequence):
        return isinstance(exc, tuple(cast("Sequence[type[Exception]]", retry_on)))
    if isinstance(retry_on, type):
        return isinstance(exc, retry_on)
    return bool(retry_on(exc))
