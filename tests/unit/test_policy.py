"""A node's metadata, retry policy and timeout become the options of its activity."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from langgraph.types import RetryPolicy, TimeoutPolicy

from adapter._pregel import NodeFacts
from adapter.errors import ConfigError
from adapter.policy import policy_of
from tests.graphs.shapes import linear


def facts(durable: Any = None, **more: Any) -> NodeFacts:
    given: dict[str, Any] = {"retry": (), "timeout": None, "subgraph": None, **more}
    return NodeFacts("node", {} if durable is None else {"durable": durable}, **given)


def test_every_node_is_an_effect_unless_it_says_otherwise() -> None:
    assert policy_of(facts()).kind == "effect"
    assert policy_of(facts("inline")).kind == "inline"


def test_subgraphs_are_gated_unless_they_must_run_in_one_piece() -> None:
    graph = linear()
    assert policy_of(facts(subgraph=graph)).kind == "subgraph"
    assert policy_of(facts("effect", subgraph=graph)).kind == "effect"
    assert policy_of(facts(subgraph=graph, timeout=TimeoutPolicy(run_timeout=5))).kind == "effect"
    graph.checkpointer = False
    assert policy_of(facts(subgraph=graph)).kind == "effect"


def test_options() -> None:
    durable = {
        "heartbeat_timeout": timedelta(minutes=1),
        "start_to_close_timeout": 600,
        "task_queue": "gpu",
        "max_attempts": 3,
    }
    assert policy_of(facts(durable)).options == {"hb": 60.0, "stc": 600.0, "queue": "gpu", "attempts": 3}


def test_a_run_timeout_has_the_activitys_behind_it() -> None:
    assert policy_of(facts(timeout=TimeoutPolicy(run_timeout=5))).options == {"stc": 35.0}


@pytest.mark.parametrize(
    "durable",
    ["yes", 1, {"heartbeat": 5}, {"heartbeat_timeout": 0}, {"heartbeat_timeout": "5"}, {"max_attempts": 0}],
)
def test_what_is_not_understood_is_refused(durable: Any) -> None:
    with pytest.raises(ConfigError, match='node "node"'):
        policy_of(facts(durable))


def test_delays_follow_the_first_policy_that_matches() -> None:
    first = RetryPolicy(
        initial_interval=1, backoff_factor=2, max_interval=3, max_attempts=4, jitter=False, retry_on=OSError
    )
    second = RetryPolicy(initial_interval=9, jitter=False, max_attempts=2, retry_on=(ValueError, KeyError))
    policy = policy_of(facts(retry=(first, second)))

    assert [policy.retry_delay(ConnectionError(), attempt) for attempt in (1, 2, 3, 4)] == [1, 2, 3, None]
    assert [policy.retry_delay(KeyError(), attempt) for attempt in (1, 2)] == [9, None]
    assert policy.retry_delay(TypeError(), 1) is None


def test_a_retry_on_function_decides() -> None:
    def says_again(exc: Exception) -> bool:
        return "again" in str(exc)

    policy = policy_of(facts(retry=(RetryPolicy(jitter=False, retry_on=says_again),)))

    assert policy.retry_delay(ValueError("again"), 1) == 0.5
    assert policy.retry_delay(ValueError("no"), 1) is None


def test_jitter_adds_up_to_a_second() -> None:
    policy = policy_of(facts(retry=(RetryPolicy(initial_interval=1, retry_on=Exception),)))
    delays = {policy.retry_delay(ValueError(), 1) for _ in range(20)}

    assert len(delays) > 1
    assert all(delay is not None and 1 <= delay <= 2 for delay in delays)
