"""How a run ends, and what its status, its thread, its stream, a wait and a join then say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.api.graphs import Held
from tests.api.serving import Serving
from tests.protocol.cases import ASKS, FAILS, HI, events_of
from tests.protocol.narrate import brief

DONE = "{messages=[<human hi> <ai Hello you>] trail=[plan call_model human finish]}"
STOPPED = "{messages=[<human hi> <ai Hello you>] trail=[plan call_model]"
ASKED = "__interrupt__=[?{ask=Go on?}]"
RAISED = "{__error__={error=ValueError message=boom in plan}}"


@dataclass(frozen=True)
class Ending:
    """An ending of a run of the graph "agent".

    Attributes:
        body: of the request.
        run: the run's status.
        thread: the thread's.
        last: name of the stream's last event.
        waited: what a wait answers, and a join after the fact. (The reference's join leaves the values out if there is
            a question; a client whose wait was cut off joins, and is told here what it would have been told.)
    """

    body: Mapping[str, Any]
    run: str
    thread: str
    last: str
    waited: str


ENDINGS = {
    "done": Ending({"input": HI}, "success", "idle", "values", DONE),
    "a question": Ending(
        {"input": ASKS},
        *("success", "interrupted", "values"),
        f"{STOPPED} mode=ask {ASKED}}}",
    ),
    "a breakpoint": Ending(
        {"input": HI, "interrupt_before": ["human"]},
        *("success", "interrupted", "values"),
        f"{STOPPED}}}",
    ),
    "a node raises": Ending({"input": FAILS}, "error", "error", "error", RAISED),
}


@pytest.mark.parametrize("name", ENDINGS)
async def test_of_itself(api: Serving, name: str) -> None:
    ending = ENDINGS[name]
    thread = await api.thread()
    events = await events_of(api, thread, "agent", ending.body)
    (run,) = (await api.http.get(f"/threads/{thread}/runs")).json()
    joined = (await api.http.get(f"/threads/{thread}/runs/{run['run_id']}/join")).json()
    assert (run["status"], await _thread_status(api, thread)) == (ending.run, ending.thread)
    assert events[-1].name == ending.last
    assert brief(joined) == ending.waited
    assert brief(await api.wait(await api.thread(), "agent", **ending.body)) == ending.waited


async def _thread_status(api: Serving, thread: str) -> str:
    return str((await api.http.get(f"/threads/{thread}")).json()["status"])


async def test_while_it_runs_and_waits(api: Serving, held: Held) -> None:
    thread = await api.thread()
    first = await api.run(thread, "held", input={"trail": []})
    await held.started.wait()
    second = await api.run(thread, "agent", input={"trail": []})
    statuses = (await api.status(thread, first), await api.status(thread, second))
    assert (*statuses, await _thread_status(api, thread)) == ("running", "pending", "busy")
    held.go.set()
    await api.http.get(f"/threads/{thread}/runs/{second}/join")
    statuses = (await api.status(thread, first), await api.status(thread, second))
    assert (*statuses, await _thread_status(api, thread)) == ("success", "success", "idle")


async def test_cancelled(api: Serving, held: Held) -> None:
    thread = await api.thread()
    run = await api.run(thread, "held", input={"trail": ["x"]})
    await held.started.wait()
    url = f"/threads/{thread}/runs/{run}"
    assert (await api.http.post(f"{url}/cancel?wait=0&action=interrupt")).status_code == 202
    joined = await api.http.get(f"{url}/join")
    assert (joined.status_code, joined.json()) == (200, {})
    shown = (await api.http.get(f"/threads/{thread}")).json()
    assert (await api.status(thread, run), shown["status"]) == ("interrupted", "interrupted")
    assert (shown["error"]["error"], shown["values"]) == ("UserInterrupt", {"trail": ["x"]})
    state = (await api.http.get(f"/threads/{thread}/state")).json()
    assert (state["next"], state["tasks"][0]["error"]) == (["hold"], None)


async def test_rolled_back(api: Serving, held: Held) -> None:
    thread = await api.thread()
    run = await api.run(thread, "held", input={"trail": ["x"]})
    await held.started.wait()
    url = f"/threads/{thread}/runs/{run}"
    answered = await api.http.post(f"{url}/cancel?wait=1&action=rollback")
    assert (answered.status_code, answered.json()) == (200, {})
    shown = (await api.http.get(f"/threads/{thread}")).json()
    assert ((await api.http.get(url)).status_code, shown["status"]) == (404, "idle")
    assert (shown["error"]["error"], shown["values"]) == ("UserRollback", None)
    state = (await api.http.get(f"/threads/{thread}/state")).json()
    assert (state["values"], state["next"], state["checkpoint"]) == ({}, [], None)


async def test_an_edit_that_leaves_nodes_to_run(api: Serving) -> None:
    thread = await api.thread()
    await api.wait(thread, "agent", input=HI)
    for node, status in (("call_model", "interrupted"), ("finish", "idle")):
        edit = {"values": {"answer": "edited"}, "as_node": node}
        assert (await api.http.post(f"/threads/{thread}/state", json=edit)).status_code == 200
        assert await _thread_status(api, thread) == status
