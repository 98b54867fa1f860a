"""What the body of a run may not be, and that nothing was recorded then."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.graphs import steps
from tests.api.serving import Serving, fresh

GRAPHS = {"graph": steps("a"), "other": steps("b")}

ASSISTANT = {"assistant_id": "graph"}
UNKNOWN = (
    "Invalid assistant: 'nope'. Must be either:\n- A valid assistant UUID, or\n"
    "- One of the registered graphs: graph, other"
)
REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({}, 422, "assistant_id: "),
    ({"assistant_id": 7}, 422, "assistant_id: "),
    ({"assistant_id": "nope"}, 422, UNKNOWN),
    ({"assistant_id": "55f52076-114e-4066-b702-193a1af169ea"}, 404, "Thread or assistant not found."),
    ({**ASSISTANT, "stream_mode": "nope"}, 422, "stream_mode.0: "),
    ({**ASSISTANT, "stream_mode": {"a": 1}}, 422, "stream_mode: "),
    ({**ASSISTANT, "multitask_strategy": "zzz"}, 422, "multitask_strategy: "),
    ({**ASSISTANT, "interrupt_before": "nodeX"}, 422, "interrupt_before"),
    ({**ASSISTANT, "interrupt_after": [1]}, 422, "interrupt_after"),
    ({**ASSISTANT, "if_not_exists": "zzz"}, 422, "if_not_exists: "),
    ({**ASSISTANT, "on_disconnect": "zzz"}, 422, "on_disconnect: "),
    ({**ASSISTANT, "after_seconds": -1}, 422, "after_seconds: "),
    ({**ASSISTANT, "after_seconds": 1e300}, 422, "after_seconds: "),
    ({**ASSISTANT, "after_seconds": "soon"}, 422, "after_seconds: "),
    ({**ASSISTANT, "webhook": "here"}, 422, "webhook: "),
    ({**ASSISTANT, "config": {"recursion_limit": "many"}}, 422, "config.recursion_limit: "),
    ({**ASSISTANT, "config": {"recursion_limit": 0}}, 422, "config.recursion_limit: "),
    ({**ASSISTANT, "config": {"configurable": []}}, 422, "config.configurable: "),
    ({**ASSISTANT, "config": {"tags": "t"}}, 422, "config.tags: "),
    ({**ASSISTANT, "command": {"goto": 7}}, 422, "command.goto"),
    ({**ASSISTANT, "command": {"update": "x"}}, 422, "command.update"),
    ({**ASSISTANT, "command": "x"}, 422, "command: "),
    ({**ASSISTANT, "metadata": {"turns_temporary": True}}, 422, "reserved"),
    ({**ASSISTANT, "checkpoint": {"checkpoint_id": 7}}, 422, "checkpoint: "),
    ({**ASSISTANT, "config": {"configurable": {"checkpoint_id": 7}}}, 422, "config.configurable: "),
    ({**ASSISTANT, "context": {"a": 1}, "config": {"configurable": {"k": 1}}}, 400, "Cannot specify both"),
]


@pytest.mark.parametrize("route", ["runs", "runs/stream", "runs/wait"])
async def test_refused(api: Serving, route: str) -> None:
    thread = await api.thread()
    for body, status, says in REFUSED:
        answered = await api.http.post(f"/threads/{thread}/{route}", json=body)
        assert (answered.status_code, says in answered.json()["detail"]) == (status, True), answered.text
        assert answered.headers["content-type"] == "application/json"
    missing = await api.http.post(f"/threads/{fresh()}/{route}", json=ASSISTANT)
    assert (missing.status_code, missing.json()) == (404, {"detail": "Thread or assistant not found."})
    assert (await api.http.get(f"/threads/{thread}/runs")).json() == []
    assert (await api.http.get(f"/threads/{thread}")).json()["status"] == "idle"


async def test_nulls_are_absent(api: Serving) -> None:
    names = (
        "config metadata checkpoint checkpoint_id webhook interrupt_before interrupt_after context command "
        "multitask_strategy stream_mode stream_subgraphs stream_resumable if_not_exists after_seconds "
        "feedback_keys durability on_disconnect on_completion langsmith_tracer strict_resume"
    )
    body: dict[str, Any] = {**dict.fromkeys(names.split()), "zzz": 1}
    assert await api.wait(await api.thread(), input={"trail": ["x"]}, **body) == {"trail": ["x", "a"]}


async def test_bad_input_is_the_graphs_to_refuse(api: Serving) -> None:
    for given in ("just text", [1], 7):
        events = await api.stream(await api.thread(), input=given)
        assert [e.name for e in events] == ["metadata", "error"], given
    events = await api.stream(await api.thread())
    assert events[-1].data == {
        "error": "EmptyInputError",
        "message": "Received no input for __start__",
    }
