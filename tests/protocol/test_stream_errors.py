"""What ends with an error: a node, its input, the recursion limit; and what comes after."""

from __future__ import annotations

import pytest

from tests.api.serving import Serving
from tests.protocol.cases import FAILS, Case, told

CASES = {
    "a node raises": Case(
        {"input": FAILS, "stream_mode": ["values", "updates", "tasks", "debug"]},
        """
        metadata: attempt 1
        debug: -1 checkpoint: input -1 next [__start__]
        values: {messages=[<human hi>] trail=[] mode=fail}
        debug: 0 checkpoint: loop 0 next [plan]
        tasks: plan starts with {messages=[<human hi>] trail=[] mode=fail}
        debug: 1 task: plan
        tasks: plan ends with {error={error=ValueError message=boom in plan}}
        debug: 1 task_result: plan
        error: ValueError: boom in plan
        """,
    ),
    "tried again without input": Case(
        {"input": None, "stream_mode": ["values"]},
        """
        metadata: attempt 1
        values: {messages=[<human hi>] trail=[] mode=fail}
        error: ValueError: boom in plan
        """,
        before=[{"input": FAILS}],
    ),
    "new input after it": Case(
        {"input": {"mode": "ok"}, "stream_mode": ["updates"]},
        """
        metadata: attempt 1
        updates: {plan={trail=[plan]}}
        updates: {call_model={messages=[<ai Hello you>] trail=[call_model]}}
        updates: {human={trail=[human]}}
        updates: {finish={trail=[finish]}}
        """,
        before=[{"input": FAILS}],
    ),
    "an input that is no state": Case(
        {"input": "just text", "stream_mode": ["values"]},
        """
        metadata: attempt 1
        error: InvalidUpdateError: Expected dict, got just text
        """,
    ),
    "a message that is none": Case(
        {"input": {"messages": [{"role": "zzz", "content": "x"}]}, "stream_mode": ["values"]},
        """
        metadata: attempt 1
        error: ValueError: Unexpected message type: 'zzz'
        """,
    ),
    "no input": Case(
        {"input": None, "stream_mode": ["values"]},
        """
        metadata: attempt 1
        error: EmptyInputError: Received no input for __start__
        """,
    ),
    "the recursion limit": Case(
        {"config": {"recursion_limit": 2}, "stream_mode": ["updates"]},
        """
        metadata: attempt 1
        updates: {plan={trail=[plan]}}
        updates: {call_model={messages=[<ai Hello you>] trail=[call_model]}}
        error: GraphRecursionError: Recursion limit of 2 reached without hitting a stop condition
        """,
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_it_tells(api: Serving, name: str) -> None:
    assert await told(api, "agent", CASES[name]) == CASES[name].lines
