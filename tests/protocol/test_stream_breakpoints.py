"""Static breakpoints: where streams end, and go on without input."""

from __future__ import annotations

import pytest

from tests.api.serving import Serving
from tests.protocol.cases import Case, told

CASES = {
    "before a node": Case(
        {"interrupt_before": ["human"], "stream_mode": ["values", "updates"]},
        """
        metadata: attempt 1
        values: {messages=[<human hi>] trail=[]}
        updates: {plan={trail=[plan]}}
        values: {messages=[<human hi>] trail=[plan]}
        updates: {call_model={messages=[<ai Hello you>] trail=[call_model]}}
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model]}
        updates: {__interrupt__=[]}
        """,
    ),
    "after every node": Case(
        {"interrupt_after": "*", "stream_mode": ["updates"]},
        """
        metadata: attempt 1
        updates: {plan={trail=[plan]}}
        updates: {__interrupt__=[]}
        """,
    ),
    "going on": Case(
        {"input": None, "stream_mode": ["updates"]},
        """
        metadata: attempt 1
        updates: {human={trail=[human]}}
        updates: {finish={trail=[finish]}}
        """,
        before=[{"interrupt_before": ["human"]}],
    ),
    "going on with values": Case(
        {"input": None, "stream_mode": ["values"]},
        """
        metadata: attempt 1
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model]}
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model human]}
        values: {messages=[<human hi> <ai Hello you>] trail=[plan call_model human finish]}
        """,
        before=[{"interrupt_before": ["human"]}],
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_it_tells(api: Serving, name: str) -> None:
    assert await told(api, "agent", CASES[name]) == CASES[name].lines
