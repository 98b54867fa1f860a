"""A question: with its schema in streams and answers, without it in states and threads, there by its innermost task."""

from __future__ import annotations

from tests.api.serving import Serving
from tests.protocol.cases import HI, events_of

ASKED = {"ask": "inside sub"}


async def test_where_it_is_shown(api: Serving) -> None:
    thread = await api.thread()
    events = await events_of(api, thread, "nested", {"input": HI, "stream_mode": ["values"]})
    (streamed,) = events[-1].data["__interrupt__"]
    assert streamed == {"value": ASKED, "id": streamed["id"], "response_schema": None}
    shown = {"id": streamed["id"], "value": ASKED}

    (run,) = (await api.http.get(f"/threads/{thread}/runs")).json()
    joined = (await api.http.get(f"/threads/{thread}/runs/{run['run_id']}/join")).json()
    assert joined["__interrupt__"] == [streamed]

    state = (await api.http.get(f"/threads/{thread}/state?subgraphs=true")).json()
    (task,) = state["tasks"]
    assert (state["interrupts"], task["interrupts"], task["checkpoint"]) == ([shown], [shown], None)
    (inner,) = task["state"]["tasks"]
    assert inner["interrupts"] == [shown]

    short = (await api.http.get(f"/threads/{thread}/state")).json()
    (task,) = short["tasks"]
    assert (task["state"], task["checkpoint"]) == (
        None,
        {"thread_id": thread, "checkpoint_ns": f"child:{task['id']}"},
    )
    assert (await api.http.get(f"/threads/{thread}")).json()["interrupts"] == {inner["id"]: [shown]}
