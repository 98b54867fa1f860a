"""What a client puts into the store, nodes read, and the other way round."""

from __future__ import annotations

from typing import Any

from langgraph.config import get_store
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from tests.api.serving import serving


class State(TypedDict, total=False):
    name: str


def _remembering() -> Any:
    async def remember(state: State) -> Any:
        store = get_store()
        item = await store.aget(("users", "u1"), "told")
        await store.aput(("users", "u1"), "seen", {"times": 1})
        return {"name": item.value["name"] if item else "nobody"}

    builder = StateGraph(State)
    builder.add_node("remember", remember)
    builder.add_edge(START, "remember")
    return builder.compile()


async def test_both_ways(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"graph": _remembering()}) as api:
        await api.sdk.store.put_item(["users", "u1"], "told", {"name": "Ann"})
        assert await api.wait(await api.thread(), input={"name": ""}) == {"name": "Ann"}
        assert (await api.sdk.store.get_item(["users", "u1"], "seen"))["value"] == {"times": 1}
