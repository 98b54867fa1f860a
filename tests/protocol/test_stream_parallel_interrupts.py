"""Two questions at the same time, each told by itself."""

from __future__ import annotations

import pytest

from tests.api.serving import Serving
from tests.protocol.cases import Case, told

CASES = {
    "both are asked": Case(
        {"stream_mode": ["values", "updates"]},
        """
        metadata: attempt 1
        values: {messages=[<human hi>] trail=[]}
        updates: {__interrupt__=[?q1]}
        values: {messages=[<human hi>] trail=[] __interrupt__=[?q1]}
        updates: {__interrupt__=[?q2]}
        values: {messages=[<human hi>] trail=[] __interrupt__=[?q2]}
        """,
        parallel=True,
    ),
    "one answer for two": Case(
        {"command": {"resume": "x"}, "stream_mode": ["updates"]},
        """
        metadata: attempt 1
        error: RuntimeError: When there are multiple pending interrupts, you must specify the interrupt id when resuming
        """,
        before=[{}],
        parallel=True,
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_it_tells(api: Serving, name: str) -> None:
    assert await told(api, "par", CASES[name]) == CASES[name].lines
