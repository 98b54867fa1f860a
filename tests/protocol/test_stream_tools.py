"""Messages that no model streamed: a tool call, and the tool's answer."""

from __future__ import annotations

import pytest

from tests.api.serving import Serving
from tests.protocol.cases import Case, told

CASES = {
    "values": Case(
        {"stream_mode": ["values"]},
        """
        metadata: attempt 1
        values: {messages=[<human hi>] trail=[]}
        values: {messages=[<human hi> <ai  get_weather()>] trail=[]}
        values: {messages=[<human hi> <ai  get_weather()> <tool sunny in Paris>] trail=[]}
        values: {messages=[<human hi> <ai  get_weather()> <tool sunny in Paris> <ai It is sunny>] trail=[]}
        """,
    ),
    "messages": Case(
        {"stream_mode": ["messages"]},
        """
        metadata: attempt 1
        messages/metadata: of agent
        messages/complete: [<ai  get_weather()>]
        messages/metadata: of tools
        messages/complete: [<tool sunny in Paris>]
        messages/metadata: of agent
        messages/partial: [<ai It>]
        messages/partial: [<ai It >]
        messages/partial: [<ai It is>]
        messages/partial: [<ai It is >]
        messages/partial: [<ai It is sunny>]
        """,
    ),
    "several": Case(
        {"stream_mode": ["updates", "messages-tuple", "custom"]},
        """
        metadata: attempt 1
        messages: <ai  get_weather()> of agent
        updates: {agent={messages=[<ai  get_weather()>]}}
        custom: {tool=get_weather progress=0.5}
        messages: <tool sunny in Paris> of tools
        updates: {tools={messages=[<tool sunny in Paris>]}}
        messages: <AIMessageChunk It> of agent
        messages: <AIMessageChunk  > of agent
        messages: <AIMessageChunk is> of agent
        messages: <AIMessageChunk  > of agent
        messages: <AIMessageChunk sunny> of agent
        updates: {agent={messages=[<ai It is sunny>]}}
        """,
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_it_tells(api: Serving, name: str) -> None:
    assert await told(api, "tools", CASES[name]) == CASES[name].lines
