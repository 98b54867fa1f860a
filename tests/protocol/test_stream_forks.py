"""A run from an earlier checkpoint, addressed in each of the ways that there are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.serving import Serving, fresh
from tests.protocol.cases import events_of
from tests.protocol.narrate import narrated

GOES_ON = [
    "metadata: attempt 1",
    "updates: {human={trail=[human]}}",
    "updates: {finish={trail=[finish]}}",
]
EDITED = [
    "metadata: attempt 1",
    "values: {messages=[<human edited>] trail=[]}",
    "values: {messages=[<human edited>] trail=[plan]}",
    "values: {messages=[<human edited> <ai Hello you>] trail=[plan call_model]}",
    "values: {messages=[<human edited> <ai Hello you>] trail=[plan call_model human]}",
    "values: {messages=[<human edited> <ai Hello you>] trail=[plan call_model human finish]}",
]


async def _ran(api: Serving) -> tuple[str, dict[str, dict[str, Any]]]:
    """Returns a thread that a run has ended on, and its checkpoints by the node that comes next."""
    thread = await api.thread()
    await events_of(api, thread, "agent", {})
    history = (await api.http.post(f"/threads/{thread}/history", json={"limit": 10})).json()
    return thread, {"".join(state["next"]): state["checkpoint"] for state in history}


@pytest.mark.parametrize("way", ["checkpoint", "checkpoint_id", "config"])
async def test_going_on_from_one(api: Serving, way: str) -> None:
    thread, at = await _ran(api)
    found = at["human"]["checkpoint_id"]
    where: dict[str, Any] = {
        "checkpoint": {"checkpoint": at["human"]},
        "checkpoint_id": {"checkpoint_id": found},
        "config": {"config": {"configurable": {"checkpoint_id": found}}},
    }[way]
    events = await events_of(api, thread, "agent", {**where, "input": None, "stream_mode": ["updates"]})
    assert narrated(events) == GOES_ON


async def test_another_input_from_one(api: Serving) -> None:
    thread, at = await _ran(api)
    edited = {"messages": [{"role": "user", "content": "edited", "id": "m9"}]}
    body = {"input": edited, "checkpoint": at["__start__"], "stream_mode": ["values"]}
    assert narrated(await events_of(api, thread, "agent", body)) == EDITED


async def test_one_that_does_not_exist_is_an_empty_state(api: Serving) -> None:
    thread, _ = await _ran(api)
    body = {"input": None, "checkpoint": {"checkpoint_id": fresh()}, "stream_mode": ["updates"]}
    assert narrated(await events_of(api, thread, "agent", body)) == [
        "metadata: attempt 1",
        "error: EmptyInputError: Received no input for __start__",
    ]
