"""A graph with a subgraph: what it shows of the inside, asked to and not."""

from __future__ import annotations

import pytest

from tests.api.serving import Serving
from tests.protocol.cases import Case, told

CASES = {
    "without subgraphs": Case(
        {"stream_mode": ["values", "updates", "messages-tuple", "custom"]},
        """
        metadata: attempt 1
        values: {messages=[<human hi>] trail=[]}
        custom: {step=plan pct=10}
        updates: {plan={trail=[plan]}}
        values: {messages=[<human hi>] trail=[plan]}
        messages: <ai sub says hi> of child
        updates: {child={messages=[<human hi> <ai sub says hi>]}}
        values: {messages=[<human hi> <ai sub says hi>] trail=[plan]}
        updates: {finish={trail=[finish]}}
        values: {messages=[<human hi> <ai sub says hi>] trail=[plan finish]}
        """,
    ),
    "with subgraphs": Case(
        {"stream_mode": ["values", "updates", "messages-tuple", "custom"], "stream_subgraphs": True},
        """
        metadata: attempt 1
        values: {messages=[<human hi>] trail=[]}
        custom: {step=plan pct=10}
        updates: {plan={trail=[plan]}}
        values: {messages=[<human hi>] trail=[plan]}
        values|child:ID: {messages=[<human hi>]}
        custom|child:ID: {from=sub_a}
        messages|child:ID: <AIMessageChunk sub> of sub_a
        messages|child:ID: <AIMessageChunk  > of sub_a
        messages|child:ID: <AIMessageChunk says> of sub_a
        messages|child:ID: <AIMessageChunk  > of sub_a
        messages|child:ID: <AIMessageChunk hi> of sub_a
        updates|child:ID: {sub_a={messages=[<ai sub says hi>] note=a}}
        values|child:ID: {messages=[<human hi> <ai sub says hi>] note=a}
        updates|child:ID: {sub_b={note=b}}
        values|child:ID: {messages=[<human hi> <ai sub says hi>] note=b}
        updates: {child={messages=[<human hi> <ai sub says hi>]}}
        values: {messages=[<human hi> <ai sub says hi>] trail=[plan]}
        updates: {finish={trail=[finish]}}
        values: {messages=[<human hi> <ai sub says hi>] trail=[plan finish]}
        """,
    ),
    "tasks and checkpoints with subgraphs": Case(
        {"stream_mode": ["tasks", "checkpoints"], "stream_subgraphs": True},
        """
        metadata: attempt 1
        checkpoints: input -1 next [__start__] {messages=[] trail=[]}
        checkpoints: loop 0 next [plan] {messages=[<human hi>] trail=[]}
        tasks: plan starts with {messages=[<human hi>] trail=[]}
        tasks: plan ends with {result={trail=[plan]}}
        checkpoints: loop 1 next [child] {messages=[<human hi>] trail=[plan]}
        tasks: child starts with {messages=[<human hi>] trail=[plan]}
        checkpoints|child:ID: input -1 next [__start__] {messages=[]}
        checkpoints|child:ID: loop 0 next [sub_a] {messages=[<human hi>]}
        tasks|child:ID: sub_a starts with {messages=[<human hi>]}
        tasks|child:ID: sub_a ends with {result={messages=[<ai sub says hi>] note=a}}
        checkpoints|child:ID: loop 1 next [sub_b] {messages=[<human hi> <ai sub says hi>] note=a}
        tasks|child:ID: sub_b starts with {messages=[<human hi> <ai sub says hi>] note=a}
        tasks|child:ID: sub_b ends with {result={note=b}}
        checkpoints|child:ID: loop 2 next [] {messages=[<human hi> <ai sub says hi>] note=b}
        tasks: child ends with {result={messages=[<human hi> <ai sub says hi>]}}
        checkpoints: loop 2 next [finish] {messages=[<human hi> <ai sub says hi>] trail=[plan]}
        tasks: finish starts with {messages=[<human hi> <ai sub says hi>] trail=[plan]}
        tasks: finish ends with {result={trail=[finish]}}
        checkpoints: loop 3 next [] {messages=[<human hi> <ai sub says hi>] trail=[plan finish]}
        """,
    ),
    "messages with subgraphs have no suffix": Case(
        {"stream_mode": ["messages"], "stream_subgraphs": True},
        """
        metadata: attempt 1
        messages/metadata: of sub_a
        messages/partial: [<ai sub>]
        messages/partial: [<ai sub >]
        messages/partial: [<ai sub says>]
        messages/partial: [<ai sub says >]
        messages/partial: [<ai sub says hi>]
        """,
    ),
    "messages without subgraphs": Case(
        {"stream_mode": ["messages"]},
        """
        metadata: attempt 1
        messages/metadata: of child
        messages/complete: [<ai sub says hi>]
        """,
    ),
    "events, always with subgraphs": Case(
        {"stream_mode": "events"},
        """
        metadata: attempt 1
        events: chain_start 0/parent
        events: chain_start 1/plan
        events: chain_stream 1/plan {trail=[plan]}
        events: chain_end 1/plan {trail=[plan]}
        events: chain_start 1/child
        events: chain_start 2/LangGraph
        events: chain_start 3/sub_a
        events: chat_model_start 4/GenericFakeChatModel
        events: chat_model_stream 4/GenericFakeChatModel <AIMessageChunk sub>
        events: chat_model_stream 4/GenericFakeChatModel <AIMessageChunk  >
        events: chat_model_stream 4/GenericFakeChatModel <AIMessageChunk says>
        events: chat_model_stream 4/GenericFakeChatModel <AIMessageChunk  >
        events: chat_model_stream 4/GenericFakeChatModel <AIMessageChunk hi>
        events: chat_model_end 4/GenericFakeChatModel <ai sub says hi>
        events: chain_stream 3/sub_a {messages=[<ai sub says hi>] note=a}
        events: chain_end 3/sub_a {messages=[<ai sub says hi>] note=a}
        events: chain_start 3/sub_b
        events: chain_stream 3/sub_b {note=b}
        events: chain_end 3/sub_b {note=b}
        events: chain_end 2/LangGraph {messages=[<human hi> <ai sub says hi>] note=b}
        events: chain_stream 1/child {messages=[<human hi> <ai sub says hi>] note=b}
        events: chain_end 1/child {messages=[<human hi> <ai sub says hi>] note=b}
        events: chain_start 1/finish
        events: chain_stream 1/finish {trail=[finish]}
        events: chain_end 1/finish {trail=[finish]}
        events: chain_end 0/parent {messages=[<human hi> <ai sub says hi>] trail=[plan finish]}
        """,
    ),
    "debug with subgraphs": Case(
        {"stream_mode": ["debug"], "stream_subgraphs": True},
        """
        metadata: attempt 1
        debug: -1 checkpoint: input -1 next [__start__]
        debug: 0 checkpoint: loop 0 next [plan]
        debug: 1 task: plan
        debug: 1 task_result: plan
        debug: 1 checkpoint: loop 1 next [child]
        debug: 2 task: child
        debug|child:ID: -1 checkpoint: input -1 next [__start__]
        debug|child:ID: 0 checkpoint: loop 0 next [sub_a]
        debug|child:ID: 1 task: sub_a
        debug|child:ID: 1 task_result: sub_a
        debug|child:ID: 1 checkpoint: loop 1 next [sub_b]
        debug|child:ID: 2 task: sub_b
        debug|child:ID: 2 task_result: sub_b
        debug|child:ID: 2 checkpoint: loop 2 next []
        debug: 2 task_result: child
        debug: 2 checkpoint: loop 2 next [finish]
        debug: 3 task: finish
        debug: 3 task_result: finish
        debug: 3 checkpoint: loop 3 next []
        """,
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_it_tells(api: Serving, name: str) -> None:
    assert await told(api, "parent", CASES[name]) == CASES[name].lines
