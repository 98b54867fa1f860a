"""Pruning threads on request: deleted, or reduced to the latest checkpoint."""

from __future__ import annotations

import operator
from typing import Annotated, Any

import pytest
from langgraph.channels import DeltaChannel
from langgraph.graph import START, StateGraph
from langgraph_sdk.errors import UnprocessableEntityError
from typing_extensions import TypedDict

from tests.api.graphs import Held, asking, nested, steps
from tests.api.serving import Serving, fresh, serving

GRAPHS = {"graph": steps("plan", "finish"), "asking": asking(), "nested": nested()}


async def _prune(api: Serving, *threads: str, **body: Any) -> int:
    answered = await api.http.post("/threads/prune", json={"thread_ids": threads, **body})
    assert answered.status_code == 200, answered.text
    assert set(answered.json()) == {"pruned_count"}
    return int(answered.json()["pruned_count"])


async def test_deleted(database_url: str, temporal: str) -> None:
    held = Held()
    async with serving(database_url, temporal, {"graph": steps("plan"), "held": held.graph()}) as api:
        threads = [await api.thread() for _ in range(3)]
        await api.wait(threads[0], input={"trail": []})
        await api.run(threads[1], "held", input={"trail": []})
        await held.started.wait()
        assert await _prune(api, threads[0], threads[1], threads[0], fresh()) == 2
        await held.stopped.wait()
        assert [t["thread_id"] for t in await api.sdk.threads.search()] == [threads[2]]
        assert await api.sdk.threads.prune([threads[2]], strategy="delete") == {"pruned_count": 1}


async def test_reduced(api: Serving) -> None:
    thread, other = await api.thread(), await api.thread()
    for one in (thread, other):
        for given in ("x", "y"):
            await api.wait(one, input={"trail": [given]})
    before: Any = await api.sdk.threads.get_state(thread)
    assert await _prune(api, thread, strategy="keep_latest") == 1
    after: Any = await api.sdk.threads.get_state(thread)
    gone = {"parent_checkpoint": None, "parent_checkpoint_id": None}
    assert after == {**before, **gone}
    assert await api.sdk.threads.get_history(thread) == [after]
    assert len(await api.sdk.threads.get_history(other)) == 8
    assert len(await api.sdk.runs.list(thread)) == 2
    values = await api.wait(thread, input={"trail": ["z"]})
    assert values["trail"] == [*before["values"]["trail"], "z", "plan", "finish"]


async def test_reduced_while_it_asks(api: Serving) -> None:
    for graph, answered in (("asking", ["plan", "ask", "finish"]), ("nested", ["inner", "finish"])):
        thread = await api.thread()
        await api.wait(thread, graph, input={"trail": []})
        assert await _prune(api, thread, strategy="keep_latest") == 1
        assert len(await api.sdk.threads.get_history(thread)) == 1
        assert (await api.wait(thread, graph, command={"resume": "yes"}))["trail"] == answered


async def test_a_busy_thread_keeps_its_history(database_url: str, temporal: str) -> None:
    held = Held()
    async with serving(database_url, temporal, {"held": held.graph()}) as api:
        thread = await api.thread()
        run = await api.run(thread, "held", input={"trail": []})
        await held.started.wait()
        assert await _prune(api, thread, fresh(), strategy="keep_latest") == 0
        assert len(await api.sdk.threads.get_history(thread)) == 2
        held.go.set()
        await api.sdk.runs.join(thread, run)
        assert await _prune(api, thread, strategy="keep_latest") == 1


class Growing(TypedDict):
    log: Annotated[list[str], DeltaChannel(operator.add)]


async def test_a_state_that_is_its_history(database_url: str, temporal: str) -> None:
    async def add(state: Growing) -> Any:
        return {"log": ["added"]}

    builder = StateGraph(Growing)
    builder.add_node("add", add)
    builder.add_edge(START, "add")
    async with serving(database_url, temporal, {"graph": builder.compile()}) as api:
        thread = await api.thread()
        values = await api.wait(thread, input={"log": ["x"]})
        with pytest.raises(UnprocessableEntityError, match="DeltaChannel"):
            await api.sdk.threads.prune([thread], strategy="keep_latest")
        assert (await api.sdk.threads.get(thread))["values"] == values


async def test_refusals(api: Serving) -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({}, "thread_ids: "),
        ({"thread_ids": ["nope"]}, "Invalid thread ID: must be a UUID"),
        ({"thread_ids": [], "strategy": "nope"}, "strategy: "),
        ({"thread_ids": [fresh()] * 1001}, "thread_ids: "),
    ]
    for body, says in refused:
        answered = await api.http.post("/threads/prune", json=body)
        assert answered.status_code == 422 and says in answered.json()["detail"], answered.text
    assert await _prune(api) == 0
