"""A turn whose workflow somebody terminated can be cancelled, or ends before the next one: its thread stays usable."""

from __future__ import annotations

import pytest

from tests.api.graphs import Held
from tests.api.serving import Serving
from workflows import names

HELD = Held()
GRAPHS = {"graph": HELD.graph()}


async def test_cancel_without_a_run(api: Serving, held: Held) -> None:
    thread = await api.thread()
    run = await api.run(thread, input={"trail": ["x"]})
    await held.started.wait()
    await api.stack.client.get_workflow_handle(names.workflow_id(thread)).terminate()
    assert await api.sdk.runs.cancel(thread, run, wait=True) == {}
    assert await api.status(thread, run) == "interrupted"
    assert (await api.http.get(f"/threads/{thread}")).json()["status"] == "interrupted"
    held.go.set()
    assert (await api.wait(thread, input={"trail": ["y"]}))["trail"] == ["x", "y", "hold", "after"]


async def test_a_later_turn_lets_it_end_first(api: Serving, held: Held) -> None:
    thread = await api.thread()
    lost = await api.run(thread, input={"trail": ["x"]})
    await held.started.wait()
    await api.stack.client.get_workflow_handle(names.workflow_id(thread)).terminate()
    held.go.set()
    later = await api.wait(thread, input={"trail": ["y"]})

    assert later["trail"] == ["x", "hold", "after", "y", "hold", "after"]
    assert await api.status(thread, lost) == "success"
    assert (await api.http.get(f"/threads/{thread}")).json()["status"] == "idle"


@pytest.mark.parametrize(("strategy", "left"), [("interrupt", ["x"]), ("rollback", [])])
async def test_a_later_turn_that_cuts_in_stops_it(
    api: Serving, held: Held, strategy: str, left: list[str]
) -> None:
    thread = await api.thread()
    lost = await api.run(thread, input={"trail": ["x"]})
    await held.started.wait()
    await api.stack.client.get_workflow_handle(names.workflow_id(thread)).terminate()
    later_run = await api.run(thread, input={"trail": ["y"]}, multitask_strategy=strategy)
    await api.http.get(f"/threads/{thread}/runs/{lost}/join")
    held.go.set()
    later = (await api.http.get(f"/threads/{thread}/runs/{later_run}/join")).json()
    row = await api.http.get(f"/threads/{thread}/runs/{lost}")

    assert later["trail"] == [*left, "y", "hold", "after"]
    assert row.status_code == 404 if strategy == "rollback" else row.json()["status"] == "interrupted"
    assert (await api.http.get(f"/threads/{thread}")).json()["status"] == "idle"
