"""The official Python client: every method that it has is driven against a running server, or said not to work.

A method that a new version adds fails here until it is one or the other.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from typing import Any

import pytest
from langgraph_sdk.errors import NotFoundError

from tests.api.graphs import Held
from tests.api.serving import Serving, fresh
from tests.protocol.cases import HI

CLIENTS = ("assistants", "threads", "runs", "store")
# What is not served, and why. Each of them is a clear 404 to the client.
NOT_SERVED = {
    "threads.stream": "the event protocol",
    "threads.join_stream": "a stream of a whole thread, whatever runs on it",
}


class Watched:
    """A part of the client; notes which of its methods are called."""

    def __init__(self, name: str, client: Any, called: set[str]) -> None:
        self._name, self._client, self._called = name, client, called

    def __getattr__(self, method: str) -> Any:
        self._called.add(f"{self._name}.{method}")
        return getattr(self._client, method)


async def test_each_method(api: Serving, held: Held) -> None:
    called: set[str] = set()
    assistants, threads, runs, store = (Watched(name, getattr(api.sdk, name), called) for name in CLIENTS)
    await _assistants(assistants)
    await _threads(threads, runs)
    await _runs(runs, await api.thread(), held)
    await _store(store)
    has = {
        f"{name}.{method}"
        for name in CLIENTS
        for method, _ in inspect.getmembers(getattr(api.sdk, name), inspect.ismethod)
        if not method.startswith("_")
    }
    assert called | NOT_SERVED.keys() == has
    assert not called & NOT_SERVED.keys()


async def test_what_is_not_served_is_absent(api: Serving) -> None:
    thread = await api.thread()
    with pytest.raises(NotFoundError):
        await _all(await api.sdk.threads.join_stream(thread))
    assert (await api.http.post(f"/threads/{thread}/commands", json={})).status_code == 404


async def _all(stream: AsyncIterator[Any]) -> list[Any]:
    return [part async for part in stream]


async def _assistants(assistants: Any) -> None:
    made = await assistants.create("parent", {"tags": ["t"]}, name="Mine", metadata={"team": "one"})
    one = made["assistant_id"]
    assert (await assistants.get(one))["name"] == "Mine"
    assert (await assistants.update(one, name="Ours", description="d"))["version"] == 2
    assert [version["version"] for version in await assistants.get_versions(one)] == [2, 1]
    assert (await assistants.set_latest(one, 1))["name"] == "Mine"
    found = await assistants.search(metadata={"team": "one"}, response_format="object")
    assert [item["assistant_id"] for item in found["assistants"]] == [one] and found["next"] is None
    assert await assistants.count(metadata={"team": "one"}) == 1
    assert {"plan", "child"} <= {node["id"] for node in (await assistants.get_graph(one))["nodes"]}
    assert (await assistants.get_schemas(one))["state_schema"]["properties"].keys() >= {"messages", "trail"}
    assert list(await assistants.get_subgraphs(one)) == ["child"]
    await assistants.delete(one)
    with pytest.raises(NotFoundError):
        await assistants.get(one)


async def _threads(threads: Any, runs: Any) -> None:
    mark = fresh()
    one = (await threads.create(metadata={"mark": mark}, graph_id="agent"))["thread_id"]
    await runs.wait(one, "agent", input=HI)
    assert (await threads.get(one))["status"] == "idle"
    assert (await threads.update(one, metadata={"k": "v"}))["metadata"]["k"] == "v"
    assert await threads.update(one, metadata={"k": "w"}, return_minimal=True) is None
    assert [item["thread_id"] for item in await threads.search(metadata={"mark": mark})] == [one]
    assert await threads.count(metadata={"mark": mark}) == 1
    history = await threads.get_history(one)
    assert [state["next"] for state in history][-2:] == [["plan"], ["__start__"]]
    assert len(await threads.get_history(one, before=history[0]["checkpoint"], limit=2)) == 2
    edited = await threads.update_state(one, {"answer": "edited"}, as_node="human")
    state = await threads.get_state(one, checkpoint_id=edited["checkpoint"]["checkpoint_id"])
    assert (state["next"], state["values"]["answer"]) == (["finish"], "edited")
    assert (await threads.get_state(one, checkpoint=history[1]["checkpoint"]))["next"] == ["finish"]
    await threads.copy(one)
    first, second = [item["thread_id"] for item in await threads.search(metadata={"mark": mark})]
    assert (await threads.get_state(first))["values"] == (await threads.get_state(second))["values"]
    assert await threads.prune([first]) == {"pruned_count": 1}
    await threads.delete(second)
    assert await threads.count(metadata={"mark": mark}) == 0


async def _runs(runs: Any, thread: str, held: Held) -> None:
    told: list[Any] = []
    made = await runs.create(thread, "agent", input=HI, metadata={"n": 1}, on_run_created=told.append)
    one = made["run_id"]
    assert told == [{"run_id": one, "thread_id": thread}]
    assert (await runs.join(thread, one))["trail"][-1] == "finish"
    assert (await runs.get(thread, one))["status"] == "success"
    parts = await _all(runs.stream(thread, "agent", input=HI, stream_mode=["updates"], version="v2"))
    assert [part["type"] for part in parts] == ["metadata", *["updates"] * 4]
    newest = (await runs.list(thread, limit=1))[0]["run_id"]
    again = await _all(runs.join_stream(thread, newest, last_event_id="-1"))
    assert [part.event for part in again] == ["metadata", *["updates"] * 4]
    running = (await runs.create(thread, "held", input={"trail": []}))["run_id"]
    await held.started.wait()
    assert await runs.cancel(thread, running, wait=True) == {}
    assert (await runs.get(thread, running))["status"] == "interrupted"
    waits = (await runs.create(thread, "agent", input=HI, after_seconds=3600))["run_id"]
    await runs.cancel_many(thread_id=thread, run_ids=[waits])
    assert (await runs.get(thread, waits))["status"] == "interrupted"
    await runs.delete(thread, one)
    with pytest.raises(NotFoundError):
        await runs.get(thread, one)
    # Without a thread.
    assert [run["status"] for run in await runs.create_batch([{"assistant_id": "agent", "input": HI}])] == [
        "pending"
    ]
    assert (await runs.wait(None, "agent", input=HI))["trail"][-1] == "finish"
    assert (await _all(runs.stream(None, "agent", input=HI)))[-1].data["trail"][-1] == "finish"


async def _store(store: Any) -> None:
    space = ["sdk", fresh()]
    await store.put_item(space, "k", {"name": "Ann"})
    assert (await store.get_item(space, "k"))["value"] == {"name": "Ann"}
    found = await store.search_items(space, filter={"name": "Ann"})
    assert [item["key"] for item in found["items"]] == ["k"]
    assert (await store.list_namespaces(prefix=space))["namespaces"] == [space]
    await store.delete_item(space, "k")
    assert await store.get_item(space, "k") is None
