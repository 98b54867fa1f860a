"""Requests that the reference refuses or fails at, and that are answered here: some client makes each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.api.serving import Serving
from tests.protocol.cases import HI, filled

# Request, body, what the reference answers, and what the answer here holds.
LIBERAL: dict[str, tuple[str, Any, int, Callable[[Any], bool]]] = {
    "a graph's name is its assistant's id": (
        "GET /assistants/agent",
        None,
        422,
        lambda answer: answer["graph_id"] == "agent",
    ),
    "also for its schemas": (
        "GET /assistants/agent/schemas",
        None,
        422,
        lambda answer: answer["graph_id"] == "agent",
    ),
    "`before` is a checkpoint, as the Python SDK sends it": (
        "POST /threads/{thread}/history",
        {
            "limit": 2,
            "before": {"checkpoint_id": "{checkpoint}", "thread_id": "{thread}", "checkpoint_ns": ""},
        },
        500,
        lambda answer: len(answer) == 2,
    ),
    "`before` is an id, as the JavaScript server takes it": (
        "POST /threads/{thread}/history",
        {"limit": 2, "before": "{checkpoint}"},
        422,
        lambda answer: len(answer) == 2,
    ),
    "a search by values finds threads that have none, too": (
        "POST /threads/search",
        {"values": {"trail": ["plan", "call_model", "human", "finish"]}, "ids": ["{thread}", "{fresh}"]},
        500,
        lambda answer: len(answer) == 1,
    ),
    "only the latest state is kept": (
        "POST /threads/prune",
        {"thread_ids": ["{thread}"], "strategy": "keep_latest"},
        422,
        lambda answer: answer == {"pruned_count": 1},
    ),
    "a search of the whole store": (
        "POST /store/items/search",
        {},
        500,
        lambda answer: isinstance(answer["items"], list),
    ),
    "nulls are absent": (
        "POST /threads/{thread}/runs/wait",
        {"assistant_id": "agent", "input": HI, "config": None, "metadata": None, "checkpoint": None}
        | {"interrupt_before": None, "multitask_strategy": None, "stream_mode": None, "if_not_exists": None},
        422,
        lambda answer: answer["trail"][-1] == "finish",
    ),
}


@pytest.mark.parametrize("name", LIBERAL)
async def test_it_is_answered(api: Serving, name: str) -> None:
    request, body, _, holds = LIBERAL[name]
    thread, empty = await api.thread(), await api.thread()
    await api.wait(thread, "agent", input=HI)
    state = (await api.http.get(f"/threads/{thread}/state")).json()
    names = {"thread": thread, "fresh": empty, "checkpoint": state["checkpoint_id"]}
    method, path = filled(request, names).split(" ")
    answered = await api.http.request(method, path, json=filled(body, names))
    assert answered.status_code == 200, answered.text
    assert holds(answered.json()), answered.text
