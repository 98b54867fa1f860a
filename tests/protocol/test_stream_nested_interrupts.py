"""A question inside of a subgraph: told there and outside."""

from __future__ import annotations

import pytest

from tests.api.serving import Serving
from tests.protocol.cases import Case, told

CASES = {
    "with subgraphs": Case(
        {"stream_mode": ["values", "updates"], "stream_subgraphs": True},
        """
        metadata: attempt 1
        values: {messages=[<human hi>] trail=[]}
        values|child:ID: {messages=[<human hi>]}
        updates|child:ID: {__interrupt__=[?{ask=inside sub}]}
        values|child:ID: {messages=[<human hi>] __interrupt__=[?{ask=inside sub}]}
        updates: {__interrupt__=[?{ask=inside sub}]}
        values: {messages=[<human hi>] trail=[] __interrupt__=[?{ask=inside sub}]}
        """,
    ),
    "without subgraphs": Case(
        {"stream_mode": ["values", "updates"]},
        """
        metadata: attempt 1
        values: {messages=[<human hi>] trail=[]}
        updates: {__interrupt__=[?{ask=inside sub}]}
        values: {messages=[<human hi>] trail=[] __interrupt__=[?{ask=inside sub}]}
        """,
    ),
    "tasks with subgraphs": Case(
        {"stream_mode": ["tasks"], "stream_subgraphs": True},
        """
        metadata: attempt 1
        tasks: child starts with {messages=[<human hi>] trail=[]}
        tasks|child:ID: sub_ask starts with {messages=[<human hi>]}
        tasks|child:ID: sub_ask ends with {interrupts=[?{ask=inside sub}]}
        tasks: child ends with {interrupts=[?{ask=inside sub}]}
        """,
    ),
    "an answer": Case(
        {"command": {"resume": "yy"}, "stream_mode": ["updates"], "stream_subgraphs": True},
        """
        metadata: attempt 1
        updates|child:ID: {sub_ask={note=yy}}
        updates: {child={messages=[<human hi>]}}
        updates: {finish={trail=[finish]}}
        """,
        before=[{}],
    ),
    "an answer, seen from outside": Case(
        {"command": {"resume": "yy"}, "stream_mode": ["values", "updates"]},
        """
        metadata: attempt 1
        values: {messages=[<human hi>] trail=[]}
        updates: {child={messages=[<human hi>]}}
        values: {messages=[<human hi>] trail=[]}
        updates: {finish={trail=[finish]}}
        values: {messages=[<human hi>] trail=[finish]}
        """,
        before=[{}],
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_it_tells(api: Serving, name: str) -> None:
    assert await told(api, "nested", CASES[name]) == CASES[name].lines
