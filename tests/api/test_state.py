"""Reading a thread's state: fresh, latest, at a checkpoint, unknown, and of open subgraphs."""

from __future__ import annotations

from typing import Any

from tests.api.graphs import nested, steps
from tests.api.serving import Serving, fresh

GRAPHS = {"graph": steps("plan", "finish"), "nested": nested()}

EMPTY: dict[str, Any] = {
    "values": {},
    "next": [],
    "tasks": [],
    "metadata": None,
    "created_at": None,
    "checkpoint": None,
    "parent_checkpoint": None,
    "interrupts": [],
    "checkpoint_id": None,
    "parent_checkpoint_id": None,
}


async def test_fresh_thread(api: Serving) -> None:
    thread = await api.thread()
    assert (await api.http.get(f"/threads/{thread}/state")).json() == EMPTY
    labelled = await api.thread(metadata={"graph_id": "graph"})
    assert (await api.http.get(f"/threads/{labelled}/state")).json() == EMPTY
    missing = await api.http.get(f"/threads/{fresh()}/state")
    assert missing.status_code == 404


async def test_latest_and_at_a_checkpoint(api: Serving) -> None:
    thread = await api.thread()
    await api.wait(thread, input={"trail": ["x"]})
    run = (await api.http.get(f"/threads/{thread}/runs")).json()[0]
    state = (await api.http.get(f"/threads/{thread}/state")).json()
    assert set(state) == set(EMPTY)
    assert state["values"] == {"trail": ["x", "plan", "finish"]}
    assert state["checkpoint"] == {
        "checkpoint_id": state["checkpoint_id"],
        "thread_id": thread,
        "checkpoint_ns": "",
    }
    metadata = state["metadata"]
    assert (metadata["source"], metadata["step"], metadata["parents"]) == ("loop", 2, {})
    assert metadata["run_id"] == run["run_id"] and metadata["assistant_id"] == run["assistant_id"]
    assert not [key for key in metadata if key.startswith("turns_")]

    at = state["parent_checkpoint_id"]
    before = (await api.http.get(f"/threads/{thread}/state/{at}")).json()
    assert (before["values"], before["next"]) == ({"trail": ["x", "plan"]}, ["finish"])
    assert before["tasks"][0]["result"] == {"trail": ["finish"]}
    by_address = await api.http.post(
        f"/threads/{thread}/state/checkpoint", json={"checkpoint": state["parent_checkpoint"]}
    )
    assert by_address.json() == before
    latest = await api.http.post(
        f"/threads/{thread}/state/checkpoint",
        json={"checkpoint": {"thread_id": thread}, "subgraphs": False},
    )
    assert latest.json() == state


async def test_unknown_checkpoint(api: Serving) -> None:
    thread = await api.thread()
    await api.wait(thread, input={"trail": ["x"]})
    unknown = fresh()
    state = (await api.http.get(f"/threads/{thread}/state/{unknown}")).json()
    assert (state["values"], state["created_at"], state["checkpoint_id"]) == ({}, None, unknown)


async def test_open_subgraph(api: Serving) -> None:
    thread = await api.thread()
    await api.wait(thread, "nested", input={"trail": []})
    flat = (await api.http.get(f"/threads/{thread}/state")).json()["tasks"][0]
    address = {"thread_id": thread, "checkpoint_ns": f"child:{flat['id']}"}
    assert (flat["checkpoint"], flat["state"]) == (address, None)
    full = await api.http.get(f"/threads/{thread}/state", params={"subgraphs": "true"})
    task = full.json()["tasks"][0]
    assert task["checkpoint"] is None
    inner = task["state"]
    assert (inner["next"], inner["checkpoint"]["checkpoint_ns"]) == (
        ["sub_ask"],
        address["checkpoint_ns"],
    )
    assert set(inner["checkpoint"]["checkpoint_map"]) == {"", address["checkpoint_ns"]}
    addressed = await api.http.post(f"/threads/{thread}/state/checkpoint", json={"checkpoint": address})
    assert addressed.json()["tasks"] == inner["tasks"]
    shown = (await api.http.get(f"/threads/{thread}")).json()
    assert shown["interrupts"] == {inner["tasks"][0]["id"]: inner["interrupts"]}
