"""The history of a subgraph in a subgraph, addressed as each client joins the segments of a namespace."""

from __future__ import annotations

from typing import Any

from langgraph.graph import START, StateGraph

from tests.api.graphs import State, nested
from tests.api.serving import Serving


def _twice_nested() -> Any:
    builder = StateGraph(State)
    builder.add_node("outer", nested())
    builder.add_edge(START, "outer")
    return builder.compile()


GRAPHS = {"graph": _twice_nested()}


async def test_joined_by_either(api: Serving) -> None:
    thread = await api.thread()
    await api.wait(thread, input={"trail": ["x"]})
    state: Any = await api.sdk.threads.get_state(thread, subgraphs=True)
    outer = state["tasks"][0]
    inner = outer["state"]["tasks"][0]
    namespace = [f"outer:{outer['id']}", f"child:{inner['id']}"]
    deepest = inner["state"]
    assert deepest["checkpoint"]["checkpoint_ns"] == "|".join(namespace)
    for mark in ("|", "\x00"):
        address: Any = {"thread_id": thread, "checkpoint_ns": mark.join(namespace)}
        found: list[Any] = await api.sdk.threads.get_history(thread, checkpoint=address)
        assert [one["next"] for one in found] == [["sub_ask"], ["__start__"]]
        assert found[0]["checkpoint_id"] == deepest["checkpoint_id"]
        address["checkpoint_id"] = found[1]["checkpoint_id"]
        at: Any = await api.sdk.threads.get_state(thread, checkpoint=address)
        assert (at["next"], at["values"]) == (found[1]["next"], found[1]["values"])
        address["checkpoint_id"] = None
        before: list[Any] = await api.sdk.threads.get_history(
            thread, checkpoint=address, before=found[0]["checkpoint"]
        )
        assert [one["checkpoint_id"] for one in before] == [found[1]["checkpoint_id"]]
