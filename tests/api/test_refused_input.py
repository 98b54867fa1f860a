"""What a graph does not take fails the run that brings it, and leaves a thread that can be listed."""

from __future__ import annotations

import operator
from typing import Annotated, Any

from langgraph.graph import START, StateGraph
from pydantic import BaseModel

from tests.api.graphs import asking
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


GRAPHS = {"graph": _counting(), "asking": asking()}


async def test_an_input_that_the_schema_refuses(api: Serving) -> None:
    thread, other = await api.thread(), await api.thread()
    failed = await api.wait(thread, input={"count": "no"})
    assert failed["__error__"]["error"] == "ValidationError"

    shown = await api.http.get(f"/threads/{thread}")
    assert (shown.status_code, shown.json()["status"]) == (200, "error")
    found = await api.http.post("/threads/search", json={"ids": [thread, other]})
    assert {one["thread_id"] for one in found.json()} == {thread, other}
    assert (await api.http.post("/threads/search", json={"values": {"count": 1}})).status_code == 200


async def test_two_updates_of_a_channel_that_takes_one(api: Serving) -> None:
    thread = await api.thread()
    asked = await api.http.post(f"/threads/{thread}/runs", json={"assistant_id": "asking", "input": {"n": 1}})
    first = f"/threads/{thread}/runs/{asked.json()['run_id']}"
    assert "__interrupt__" in (await api.http.get(f"{first}/join")).json()
    await api.wait(thread, "asking", command={"update": {"n": 2}})
    # The question keeps its checkpoint, and LangGraph both updates with it.
    failed = await api.wait(thread, "asking", command={"update": {"n": 3}})
    assert failed["__error__"]["error"] == "InvalidUpdateError"

    assert (await api.http.get(f"/threads/{thread}")).status_code == 200
    found = await api.http.post("/threads/search", json={})
    assert thread in {one["thread_id"] for one in found.json()}
    for path in ("state", "history"):
        refused = await api.http.get(f"/threads/{thread}/{path}")
        assert (refused.status_code, "'n'" in refused.json()["detail"]) == (422, True)
    assert "'n'" in (await api.http.get(f"{first}/join")).json()["__error__"]["message"]
