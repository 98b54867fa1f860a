"""A question: how streams end at it, and go on after the answer."""

from __future__ import annotations

import pytest

from tests.api.serving import Serving
from tests.protocol.cases import ASKS, Case, told

CASES = {
    "values": Case(
        {"input": ASKS, "stream_mode": ["values"]},
        """
        metadata: attempt 1
        values: {messages=[<human hi>] trail=[] mode=ask}
        values: {messages=[<human hi>] trail=[plan] mode=ask}
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model] mode=ask}
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model] mode=ask __interrupt__=[?{ask=Go on?}]}
        """,
    ),
    "updates": Case(
        {"input": ASKS, "stream_mode": ["updates"]},
        """
        metadata: attempt 1
        updates: {plan={trail=[plan]}}
        updates: {call_model={messages=[<ai Hello you>] trail=[call_model]}}
        updates: {__interrupt__=[?{ask=Go on?}]}
        """,
    ),
    "messages-tuple": Case(
        {"input": ASKS, "stream_mode": ["messages-tuple"]},
        """
        metadata: attempt 1
        messages: <AIMessageChunk Hello> of call_model
        messages: <AIMessageChunk  > of call_model
        messages: <AIMessageChunk you> of call_model
        """,
    ),
    "checkpoints": Case(
        {"input": ASKS, "stream_mode": ["checkpoints"]},
        """
        metadata: attempt 1
        checkpoints: input -1 next [__start__] {messages=[] trail=[]}
        checkpoints: loop 0 next [plan] {messages=[<human hi>] trail=[] mode=ask}
        checkpoints: loop 1 next [call_model] {messages=[<human hi>] trail=[plan] mode=ask}
        checkpoints: loop 2 next [human] {messages=[<human hi> <ai Hello you>] trail=[plan call_model] mode=ask}
        """,
    ),
    "debug": Case(
        {"input": ASKS, "stream_mode": ["debug"]},
        """
        metadata: attempt 1
        debug: -1 checkpoint: input -1 next [__start__]
        debug: 0 checkpoint: loop 0 next [plan]
        debug: 1 task: plan
        debug: 1 task_result: plan
        debug: 1 checkpoint: loop 1 next [call_model]
        debug: 2 task: call_model
        debug: 2 task_result: call_model
        debug: 2 checkpoint: loop 2 next [human]
        debug: 3 task: human
        debug: 3 task_result: human
        """,
    ),
    "values, updates and tasks": Case(
        {"input": ASKS, "stream_mode": ["values", "updates", "tasks"]},
        """
        metadata: attempt 1
        values: {messages=[<human hi>] trail=[] mode=ask}
        tasks: plan starts with {messages=[<human hi>] trail=[] mode=ask}
        updates: {plan={trail=[plan]}}
        tasks: plan ends with {result={trail=[plan]}}
        values: {messages=[<human hi>] trail=[plan] mode=ask}
        tasks: call_model starts with {messages=[<human hi>] trail=[plan] mode=ask}
        updates: {call_model={messages=[<ai Hello you>] trail=[call_model]}}
        tasks: call_model ends with {result={messages=[<ai Hello you>] trail=[call_model]}}
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model] mode=ask}
        tasks: human starts with {messages=[<human hi> <ai Hello you>] trail=[plan call_model] mode=ask}
        updates: {__interrupt__=[?{ask=Go on?}]}
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model] mode=ask __interrupt__=[?{ask=Go on?}]}
        tasks: human ends with {interrupts=[?{ask=Go on?}]}
        """,
    ),
    "an answer": Case(
        {"command": {"resume": "yes"}, "stream_mode": ["values", "updates"]},
        """
        metadata: attempt 1
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model] mode=ask}
        updates: {human={answer=yes trail=[human]}}
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model human] mode=ask answer=yes}
        updates: {finish={trail=[finish]}}
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model human finish] mode=ask answer=yes}
        """,
        before=[{"input": ASKS}],
    ),
    "an answer by an id that nothing waits for": Case(
        {"command": {"resume": {"00000000000000000000000000000000": "no"}}, "stream_mode": ["updates"]},
        """
        metadata: attempt 1
        updates: {__interrupt__=[?{ask=Go on?}]}
        """,
        before=[{"input": ASKS}],
    ),
    "the same, strictly": Case(
        {
            "command": {"resume": {"00000000000000000000000000000000": "no"}},
            "stream_mode": ["updates"],
            "strict_resume": True,
        },
        """
        metadata: attempt 1
        updates: {__interrupt__=[?{ask=Go on?}]}
        """,
        before=[{"input": ASKS}],
    ),
    "an answer that nothing waits for": Case(
        {"command": {"resume": "yes"}, "stream_mode": ["values", "updates"]},
        """
        metadata: attempt 1
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model human finish]}
        """,
        before=[{}],
    ),
    "new input instead of an answer": Case(
        {
            "input": {"messages": [{"role": "user", "content": "again"}], "mode": "x"},
            "stream_mode": ["updates"],
        },
        """
        metadata: attempt 1
        updates: {plan={trail=[plan]}}
        updates: {call_model={messages=[<ai Hello you>] trail=[call_model]}}
        updates: {human={trail=[human]}}
        updates: {finish={trail=[finish]}}
        """,
        before=[{"input": ASKS}],
    ),
    "goto and update while it waits": Case(
        {"command": {"goto": "finish", "update": {"answer": "patched"}}, "stream_mode": ["updates"]},
        """
        metadata: attempt 1
        updates: {finish={trail=[finish]}}
        updates: {__interrupt__=[?{ask=Go on?}]}
        """,
        before=[{"input": ASKS}],
        parallel=True,
    ),
    "goto with an input while it waits": Case(
        {"command": {"goto": {"node": "finish", "input": {"answer": "zz"}}}, "stream_mode": ["updates"]},
        """
        metadata: attempt 1
        updates: {finish={trail=[finish]}}
        updates: {__interrupt__=[?{ask=Go on?}]}
        """,
        before=[{"input": ASKS}],
        parallel=True,
    ),
    "goto once more while it waits": Case(
        {"command": {"goto": {"node": "finish", "input": {"answer": "zz"}}}, "stream_mode": ["updates"]},
        """
        metadata: attempt 1
        updates: {finish={trail=[finish]} __metadata__={cached=True}}
        updates: {finish={trail=[finish]}}
        updates: {__interrupt__=[?{ask=Go on?}]}
        """,
        before=[{"input": ASKS}, {"command": {"goto": "finish", "update": {"answer": "patched"}}}],
        parallel=True,
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_it_tells(api: Serving, name: str) -> None:
    assert await told(api, "agent", CASES[name]) == CASES[name].lines
