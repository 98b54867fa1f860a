"""FR-21: several questions at the same time need answers by their ids: all, some, or one after the other.

A scalar answer does not say which question it is for: that is a clear error, and the thread waits on.
"""

from __future__ import annotations

import operator
from collections.abc import AsyncIterator
from typing import Annotated, Any

import pytest_asyncio
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from tests.api.serving import Serving, serving
from tests.servers import Postgres


class State(TypedDict, total=False):
    answers: Annotated[dict[str, str], operator.or_]


def _graph() -> Any:
    def asking(name: str) -> Any:
        async def ask(state: State) -> Any:
            return {"answers": {name: interrupt(name)}}

        return ask

    builder = StateGraph(State)
    for name in ("a", "b", "c"):
        builder.add_node(name, asking(name))
        builder.add_edge(START, name)
    return builder.compile()


@pytest_asyncio.fixture(scope="module")
async def api(postgres: Postgres, temporal: str) -> AsyncIterator[Serving]:
    async with serving(postgres.clone(), temporal, {"graph": _graph()}) as it:
        yield it


async def _asked(api: Serving) -> tuple[str, dict[str, str]]:
    """Returns a thread that asks, and the id of each question."""
    thread = await api.thread()
    await api.wait(thread, input={"answers": {}})
    return thread, await _open(api, thread)


async def _open(api: Serving, thread: str) -> dict[str, str]:
    state = (await api.http.get(f"/threads/{thread}/state")).json()
    return {one["value"]: one["id"] for one in state["interrupts"]}


async def _answered(api: Serving, thread: str, answers: dict[str, str]) -> Any:
    return await api.wait(thread, command={"resume": answers})


async def test_all_at_once(api: Serving) -> None:
    thread, ids = await _asked(api)
    assert list(sorted(ids)) == ["a", "b", "c"]
    outcome = await _answered(api, thread, {one: f"{name}!" for name, one in ids.items()})
    assert outcome == {"answers": {"a": "a!", "b": "b!", "c": "c!"}}
    assert (await api.http.get(f"/threads/{thread}")).json()["status"] == "idle"


async def test_some_of_them(api: Serving) -> None:
    thread, ids = await _asked(api)
    outcome = await _answered(api, thread, {ids["a"]: "a!", ids["c"]: "c!"})
    assert [one["value"] for one in outcome["__interrupt__"]] == ["b"]
    assert await _open(api, thread) == {"b": ids["b"]}
    assert (await api.http.get(f"/threads/{thread}")).json()["status"] == "interrupted"
    # One is left: now a scalar says which.
    assert await api.wait(thread, command={"resume": "b!"}) == {"answers": {"a": "a!", "b": "b!", "c": "c!"}}


async def test_one_by_one(api: Serving) -> None:
    thread, ids = await _asked(api)
    left = dict(ids)
    for name in ("c", "a"):
        outcome = await _answered(api, thread, {left.pop(name): f"{name}!"})
        assert {one["value"]: one["id"] for one in outcome["__interrupt__"]} == left
        assert await _open(api, thread) == left
    assert await _answered(api, thread, {ids["b"]: "b!"}) == {"answers": {"a": "a!", "b": "b!", "c": "c!"}}


async def test_a_scalar_for_several(api: Serving) -> None:
    thread, ids = await _asked(api)
    refused = (await api.wait(thread, command={"resume": "x"}))["__error__"]
    assert refused["error"] == "RuntimeError"
    assert "multiple pending interrupts, you must specify the interrupt id" in refused["message"]
    assert await _open(api, thread) == ids
    outcome = await _answered(api, thread, {one: f"{name}!" for name, one in ids.items()})
    assert outcome == {"answers": {"a": "a!", "b": "b!", "c": "c!"}}


async def test_an_id_that_nothing_waits_for(api: Serving) -> None:
    thread, ids = await _asked(api)
    outcome = await _answered(api, thread, {"0" * 32: "x"})
    assert {one["value"]: one["id"] for one in outcome["__interrupt__"]} == ids
