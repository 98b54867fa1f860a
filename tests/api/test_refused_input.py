"""An input that the graph's schema refuses fails its run, and leaves a thread that can be listed."""

from __future__ import annotations

import operator
from typing import Annotated, Any

from langgraph.graph import START, StateGraph
from pydantic import BaseModel

from tests.api.serving import Serving


class Counted(BaseModel):
    count: int = 0
    trail: Annotated[list[str], operator.add] = []


def _counting() -> Any:
    async def count(state: Counted) -> Any:
        return {"count": state.count + 1, "trail": ["count"]}

    builder: Any = StateGraph(Counted)
    builder.add_node("count", count)
    builder.add_edge(START, "count")
    return builder.compile()


GRAPHS = {"graph": _counting()}


async def test_its_thread_stays_readable(api: Serving) -> None:
    thread, other = await api.thread(), await api.thread()
    failed = await api.wait(thread, input={"count": "no"})
    assert failed["__error__"]["error"] == "ValidationError"

    shown = await api.http.get(f"/threads/{thread}")
    assert (shown.status_code, shown.json()["status"]) == (200, "error")
    found = await api.http.post("/threads/search", json={"ids": [thread, other]})
    assert {one["thread_id"] for one in found.json()} == {thread, other}
    assert (await api.http.post("/threads/search", json={"values": {"count": 1}})).status_code == 200
