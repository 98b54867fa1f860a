"""Editing and forking a thread's state."""

from __future__ import annotations

from typing import Any

from tests.api.graphs import Held, asking, steps
from tests.api.serving import Serving, fresh

HELD = Held()
GRAPHS = {
    "graph": steps("a", "b"),
    "abc": steps("a", "b", "c"),
    "asking": asking(),
    "held": HELD.graph(),
}


async def _edit(api: Serving, thread: str, **body: Any) -> dict[str, Any]:
    answered = await api.http.post(f"/threads/{thread}/state", json=body)
    assert answered.status_code == 200, answered.text
    return answered.json()


async def test_edit_the_head(api: Serving) -> None:
    thread = await api.thread()
    await api.wait(thread, "abc", input={"trail": ["x"]})
    edited = await _edit(api, thread, values={"answer": "edited"}, as_node="a")
    address = {
        "thread_id": thread,
        "checkpoint_ns": "",
        "checkpoint_id": edited["checkpoint_id"],
    }
    assert edited == {**edited, "checkpoint": address, "configurable": address}
    state = (await api.http.get(f"/threads/{thread}/state")).json()
    assert state["checkpoint_id"] == edited["checkpoint_id"]
    assert (state["next"], state["metadata"]["source"]) == (["b"], "update")
    assert (await api.http.get(f"/threads/{thread}")).json()["status"] == "interrupted"
    assert await api.wait(thread, "abc", input=None) == {
        "trail": ["x", "a", "b", "c", "b", "c"],
        "answer": "edited",
    }
    await _edit(api, thread, values={"answer": "last"})
    assert (await api.http.get(f"/threads/{thread}")).json()["status"] == "idle"


async def test_fork(api: Serving) -> None:
    thread = await api.thread()
    await api.wait(thread, input={"trail": ["x"]})
    history = (await api.http.get(f"/threads/{thread}/history")).json()
    after_a = history[1]
    for where in ({"checkpoint": after_a["checkpoint"]}, {"checkpoint_id": after_a["checkpoint_id"]}):
        forked = await _edit(api, thread, values={"answer": "forked"}, as_node="a", **where)
        state = (await api.http.get(f"/threads/{thread}/state")).json()
        assert state["checkpoint_id"] == forked["checkpoint_id"]
        assert state["parent_checkpoint_id"] == after_a["checkpoint_id"]
    assert (await api.wait(thread, input=None))["trail"] == ["x", "a", "b"]


async def test_run_from_a_checkpoint(api: Serving) -> None:
    thread = await api.thread()
    await api.wait(thread, input={"trail": ["x"]})
    after_a = (await api.http.get(f"/threads/{thread}/history")).json()[1]["checkpoint"]
    ways: list[dict[str, Any]] = [
        {"checkpoint": after_a},
        {"checkpoint_id": after_a["checkpoint_id"]},
        {"config": {"configurable": {"checkpoint_id": after_a["checkpoint_id"]}}},
    ]
    for way in ways:
        assert (await api.wait(thread, input=None, **way))["trail"] == ["x", "a", "b"]
        config = (await api.http.get(f"/threads/{thread}")).json()["config"]
        assert "checkpoint_id" not in config.get("configurable", {})
    assert (await api.wait(thread, input={"trail": ["y"]}, checkpoint=after_a))["trail"] == [
        "x",
        "a",
        "y",
        "a",
        "b",
    ]


async def test_edit_then_answer(api: Serving) -> None:
    thread = await api.thread()
    await api.wait(thread, "asking", input={"trail": []})
    await _edit(api, thread, values={"trail": ["edited"]}, as_node="plan")
    assert (await api.http.get(f"/threads/{thread}/state")).json()["next"] == ["ask"]
    waited = await api.wait(thread, "asking", input=None)
    assert waited["trail"] == ["plan", "edited"] and waited["__interrupt__"]
    assert (await api.wait(thread, "asking", command={"resume": "yes"}))["answer"] == "yes"


async def test_busy_thread(api: Serving, held: Held) -> None:
    thread = await api.thread()
    run = await api.run(thread, "held", input={"trail": []})
    await held.started.wait()
    answered = await api.http.post(f"/threads/{thread}/state", json={"values": {"answer": "x"}})
    assert answered.status_code == 409
    assert answered.json()["detail"].startswith(f"Thread {thread} has in-flight runs: {run}")
    held.go.set()
    await api.stack.ended(run)
    await _edit(api, thread, values={"answer": "x"})


async def test_refusals(api: Serving) -> None:
    thread = await api.thread()
    no_graph = await api.http.post(f"/threads/{thread}/state", json={"values": {"answer": "x"}})
    assert no_graph.status_code == 400 and "no assigned graph ID" in no_graph.json()["detail"]
    await api.wait(thread, input={"trail": ["x"]})
    before = (await api.http.get(f"/threads/{thread}/state")).json()
    no_node = await api.http.post(f"/threads/{thread}/state", json={"values": {}, "as_node": "zzz"})
    assert (no_node.status_code, no_node.json()) == (400, {"detail": "Node zzz does not exist"})
    odd = await api.http.post(f"/threads/{thread}/state", json={"values": {"trail": 7}, "as_node": "a"})
    assert odd.status_code == 422 and "TypeError" in odd.json()["detail"]
    text = await api.http.post(f"/threads/{thread}/state", json={"values": "text", "as_node": "a"})
    assert text.status_code == 400
    missing = await api.http.post(f"/threads/{fresh()}/state", json={"values": {}})
    assert missing.status_code == 404
    assert (await api.http.get(f"/threads/{thread}/state")).json() == before
    ignored = await _edit(api, thread, values={"zzz": "e"}, as_node="a")
    assert ignored["checkpoint_id"] != before["checkpoint_id"]
