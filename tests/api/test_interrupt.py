"""A turn that asks: what waiting clients, the thread and the state say, and how the answer goes on."""

from __future__ import annotations

from typing import Any

from tests.api.graphs import asking
from tests.api.serving import Serving

GRAPHS = {"graph": asking()}


async def test_ask_and_answer(api: Serving) -> None:
    thread = await api.thread()
    waited = await api.wait(thread, input={"trail": []})
    assert waited["trail"] == ["plan"]
    (question,) = waited["__interrupt__"]
    assert question == {"value": {"question": "Proceed?"}, "id": question["id"], "response_schema": None}
    await _shown(api, thread, question["id"])
    run = (await api.http.get(f"/threads/{thread}/runs")).json()[0]
    assert run["status"] == "success"
    joined = await api.http.get(f"/threads/{thread}/runs/{run['run_id']}/join")
    assert joined.json() == waited

    events = await api.stream(thread, command={"resume": "yes"}, stream_mode=["updates", "values"])
    assert [e.data for e in events if e.name == "updates"] == [
        {"ask": {"answer": "yes", "trail": ["ask"]}},
        {"finish": {"trail": ["finish"]}},
    ]
    assert events[-1].data == {"trail": ["plan", "ask", "finish"], "answer": "yes"}
    after = (await api.http.get(f"/threads/{thread}")).json()
    assert (after["status"], after["interrupts"], after["error"]) == ("idle", {}, None)


async def _shown(api: Serving, thread: str, question: str) -> None:
    state = (await api.http.get(f"/threads/{thread}/state")).json()
    asked = {"id": question, "value": {"question": "Proceed?"}}
    assert state["next"] == ["ask"]
    assert state["interrupts"] == [asked]
    (task,) = state["tasks"]
    assert task == {
        "id": task["id"],
        "name": "ask",
        "path": ["__pregel_pull", "ask"],
        "error": None,
        "interrupts": [asked],
        "checkpoint": None,
        "state": None,
        "result": None,
    }
    shown = (await api.http.get(f"/threads/{thread}")).json()
    assert (shown["status"], shown["interrupts"]) == ("interrupted", {task["id"]: [asked]})
    assert shown["values"] == state["values"]


async def test_answer_by_id(api: Serving) -> None:
    thread = await api.thread()
    (question,) = (await api.wait(thread, input={"trail": []}))["__interrupt__"]
    answer: dict[str, Any] = {"resume": {question["id"]: "by id"}, "update": None, "goto": []}
    assert (await api.wait(thread, command=answer))["answer"] == "by id"


async def test_breakpoint(api: Serving) -> None:
    thread = await api.thread()
    events = await api.stream(thread, input={"trail": []}, interrupt_before=["plan"], stream_mode="updates")
    assert [e.data for e in events[1:]] == [{"__interrupt__": []}]
    shown = (await api.http.get(f"/threads/{thread}")).json()
    assert (shown["status"], shown["interrupts"]) == ("interrupted", {})
    assert (await api.wait(thread, input=None, interrupt_after="*"))["trail"] == ["plan"]
