"""FR-23: `__interrupt__` never reached those who ask for `values` only. Here it does, from any depth."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tests.api.serving import serving
from tests.protocol.cases import ASKS
from tests.protocol.graphs import agent, nested, parallel

QUESTIONS = {
    "plain": (agent, [{"ask": "Go on?"}]),
    "nested": (nested, [{"ask": "inside sub"}]),
    "parallel": (parallel, ["q1", "q2"]),
}


@pytest.mark.parametrize("name", QUESTIONS)
async def test_it_does(database_url: str, temporal: str, name: str) -> None:
    graph, questions = QUESTIONS[name]
    async with serving(database_url, temporal, {"graph": graph()}) as api:
        thread = await api.thread()
        events = await api.stream(thread, input=ASKS, stream_mode="values")
        assert {e.name for e in events[1:]} == {"values"}
        asked = [one for e in events for one in e.data.get("__interrupt__", ())]
        assert sorted((one["value"] for one in asked), key=str) == questions
        assert "__interrupt__" in events[-1].data
        # As a stock client reads them.
        state = await api.sdk.threads.get_state(thread)
        assert {one["id"] for one in state["interrupts"]} == {one["id"] for one in asked}
        (run,) = await api.sdk.runs.list(thread)
        again = cast("Any", await api.sdk.runs.join(thread, run["run_id"]))
        assert {one["id"] for one in again["__interrupt__"]} == {one["id"] for one in asked}
