"""Each stream mode, and several at once, of a plain graph."""

from __future__ import annotations

import pytest

from tests.api.serving import Serving
from tests.protocol.cases import Case, told

CASES = {
    "values": Case(
        {"stream_mode": "values"},
        """
        metadata: attempt 1
        values: {messages=[<human hi>] trail=[]}
        values: {messages=[<human hi>] trail=[plan]}
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model]}
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model human]}
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model human finish]}
        """,
    ),
    "no mode is values": Case(
        {},
        """
        metadata: attempt 1
        values: {messages=[<human hi>] trail=[]}
        values: {messages=[<human hi>] trail=[plan]}
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model]}
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model human]}
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model human finish]}
        """,
    ),
    "an empty list is values": Case(
        {"stream_mode": []},
        """
        metadata: attempt 1
        values: {messages=[<human hi>] trail=[]}
        values: {messages=[<human hi>] trail=[plan]}
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model]}
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model human]}
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model human finish]}
        """,
    ),
    "updates": Case(
        {"stream_mode": "updates"},
        """
        metadata: attempt 1
        updates: {plan={trail=[plan]}}
        updates: {call_model={messages=[<ai Hello you>] trail=[call_model]}}
        updates: {human={trail=[human]}}
        updates: {finish={trail=[finish]}}
        """,
    ),
    "messages": Case(
        {"stream_mode": "messages"},
        """
        metadata: attempt 1
        messages/metadata: of call_model
        messages/partial: [<ai Hello>]
        messages/partial: [<ai Hello >]
        messages/partial: [<ai Hello you>]
        """,
    ),
    "messages-tuple": Case(
        {"stream_mode": "messages-tuple"},
        """
        metadata: attempt 1
        messages: <AIMessageChunk Hello> of call_model
        messages: <AIMessageChunk  > of call_model
        messages: <AIMessageChunk you> of call_model
        """,
    ),
    "custom": Case(
        {"stream_mode": "custom"},
        """
        metadata: attempt 1
        custom: {step=plan pct=10}
        """,
    ),
    "tasks": Case(
        {"stream_mode": "tasks"},
        """
        metadata: attempt 1
        tasks: plan starts with {messages=[<human hi>] trail=[]}
        tasks: plan ends with {result={trail=[plan]}}
        tasks: call_model starts with {messages=[<human hi>] trail=[plan]}
        tasks: call_model ends with {result={messages=[<ai Hello you>] trail=[call_model]}}
        tasks: human starts with {messages=[<human hi> <ai Hello you>] trail=[plan call_model]}
        tasks: human ends with {result={trail=[human]}}
        tasks: finish starts with {messages=[<human hi> <ai Hello you>] trail=[plan call_model human]}
        tasks: finish ends with {result={trail=[finish]}}
        """,
    ),
    "checkpoints": Case(
        {"stream_mode": "checkpoints"},
        """
        metadata: attempt 1
        checkpoints: input -1 next [__start__] {messages=[] trail=[]}
        checkpoints: loop 0 next [plan] {messages=[<human hi>] trail=[]}
        checkpoints: loop 1 next [call_model] {messages=[<human hi>] trail=[plan]}
        checkpoints: loop 2 next [human] {messages=[<human hi> <ai Hello you>] trail=[plan call_model]}
        checkpoints: loop 3 next [finish] {messages=[<human hi> <ai Hello you>] trail=[plan call_model human]}
        checkpoints: loop 4 next [] {messages=[<human hi> <ai Hello you>] trail=[plan call_model human finish]}
        """,
    ),
    "events": Case(
        {"stream_mode": "events"},
        """
        metadata: attempt 1
        events: chain_start 0/agent
        events: chain_start 1/plan
        events: chain_stream 1/plan {trail=[plan]}
        events: chain_end 1/plan {trail=[plan]}
        events: chain_start 1/call_model
        events: chat_model_start 2/GenericFakeChatModel
        events: chat_model_stream 2/GenericFakeChatModel <AIMessageChunk Hello>
        events: chat_model_stream 2/GenericFakeChatModel <AIMessageChunk  >
        events: chat_model_stream 2/GenericFakeChatModel <AIMessageChunk you>
        events: chat_model_end 2/GenericFakeChatModel <ai Hello you>
        events: chain_stream 1/call_model {messages=[<ai Hello you>] trail=[call_model]}
        events: chain_end 1/call_model {messages=[<ai Hello you>] trail=[call_model]}
        events: chain_start 1/human
        events: chain_stream 1/human {trail=[human]}
        events: chain_end 1/human {trail=[human]}
        events: chain_start 1/finish
        events: chain_stream 1/finish {trail=[finish]}
        events: chain_end 1/finish {trail=[finish]}
        events: chain_end 0/agent {messages=[<human hi> <ai Hello you>] trail=[plan call_model human finish]}
        """,
    ),
    "events and messages": Case(
        {"stream_mode": ["events", "messages-tuple"]},
        """
        metadata: attempt 1
        events: chain_start 0/agent
        events: chain_start 1/plan
        events: chain_stream 1/plan {trail=[plan]}
        events: chain_end 1/plan {trail=[plan]}
        events: chain_start 1/call_model
        events: chat_model_start 2/GenericFakeChatModel
        events: chat_model_stream 2/GenericFakeChatModel <AIMessageChunk Hello>
        messages: <AIMessageChunk Hello> of call_model
        events: chat_model_stream 2/GenericFakeChatModel <AIMessageChunk  >
        messages: <AIMessageChunk  > of call_model
        events: chat_model_stream 2/GenericFakeChatModel <AIMessageChunk you>
        messages: <AIMessageChunk you> of call_model
        events: chat_model_end 2/GenericFakeChatModel <ai Hello you>
        events: chain_stream 1/call_model {messages=[<ai Hello you>] trail=[call_model]}
        events: chain_end 1/call_model {messages=[<ai Hello you>] trail=[call_model]}
        events: chain_start 1/human
        events: chain_stream 1/human {trail=[human]}
        events: chain_end 1/human {trail=[human]}
        events: chain_start 1/finish
        events: chain_stream 1/finish {trail=[finish]}
        events: chain_end 1/finish {trail=[finish]}
        events: chain_end 0/agent {messages=[<human hi> <ai Hello you>] trail=[plan call_model human finish]}
        """,
    ),
    "debug": Case(
        {"stream_mode": "debug"},
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
        debug: 3 checkpoint: loop 3 next [finish]
        debug: 4 task: finish
        debug: 4 task_result: finish
        debug: 4 checkpoint: loop 4 next []
        """,
    ),
    "several": Case(
        {"stream_mode": ["values", "updates", "messages-tuple", "custom"]},
        """
        metadata: attempt 1
        values: {messages=[<human hi>] trail=[]}
        custom: {step=plan pct=10}
        updates: {plan={trail=[plan]}}
        values: {messages=[<human hi>] trail=[plan]}
        messages: <AIMessageChunk Hello> of call_model
        messages: <AIMessageChunk  > of call_model
        messages: <AIMessageChunk you> of call_model
        updates: {call_model={messages=[<ai Hello you>] trail=[call_model]}}
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model]}
        updates: {human={trail=[human]}}
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model human]}
        updates: {finish={trail=[finish]}}
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model human finish]}
        """,
    ),
    "tasks and debug": Case(
        {"stream_mode": ["tasks", "debug", "updates"]},
        """
        metadata: attempt 1
        debug: -1 checkpoint: input -1 next [__start__]
        debug: 0 checkpoint: loop 0 next [plan]
        tasks: plan starts with {messages=[<human hi>] trail=[]}
        debug: 1 task: plan
        updates: {plan={trail=[plan]}}
        tasks: plan ends with {result={trail=[plan]}}
        debug: 1 task_result: plan
        debug: 1 checkpoint: loop 1 next [call_model]
        tasks: call_model starts with {messages=[<human hi>] trail=[plan]}
        debug: 2 task: call_model
        updates: {call_model={messages=[<ai Hello you>] trail=[call_model]}}
        tasks: call_model ends with {result={messages=[<ai Hello you>] trail=[call_model]}}
        debug: 2 task_result: call_model
        debug: 2 checkpoint: loop 2 next [human]
        tasks: human starts with {messages=[<human hi> <ai Hello you>] trail=[plan call_model]}
        debug: 3 task: human
        updates: {human={trail=[human]}}
        tasks: human ends with {result={trail=[human]}}
        debug: 3 task_result: human
        debug: 3 checkpoint: loop 3 next [finish]
        tasks: finish starts with {messages=[<human hi> <ai Hello you>] trail=[plan call_model human]}
        debug: 4 task: finish
        updates: {finish={trail=[finish]}}
        tasks: finish ends with {result={trail=[finish]}}
        debug: 4 task_result: finish
        debug: 4 checkpoint: loop 4 next []
        """,
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_it_tells(api: Serving, name: str) -> None:
    assert await told(api, "agent", CASES[name]) == CASES[name].lines
