"""A turn whose workflow somebody terminated can be cancelled, and leaves its thread usable."""

from __future__ import annotations

from tests.api.graphs import Held
from tests.api.serving import serving
from workflows import names


async def test_cancel_without_a_run(database_url: str, temporal: str) -> None:
    held = Held()
    async with serving(database_url, temporal, {"graph": held.graph()}) as api:
        thread = await api.thread()
        run = await api.run(thread, input={"trail": ["x"]})
        await held.started.wait()
        await api.stack.client.get_workflow_handle(names.workflow_id(thread)).terminate()
        assert await api.sdk.runs.cancel(thread, run, wait=True) == {}
        assert await api.status(thread, run) == "interrupted"
        assert (await api.http.get(f"/threads/{thread}")).json()["status"] == "interrupted"
        held.go.set()
        assert (await api.wait(thread, input={"trail": ["y"]}))["trail"] == ["x", "y", "hold", "after"]


async def test_cancel_after_a_later_turn(database_url: str, temporal: str) -> None:
    held = Held()
    async with serving(database_url, temporal, {"graph": held.graph()}) as api:
        thread = await api.thread()
        lost = await api.run(thread, input={"trail": ["x"]})
        await held.started.wait()
        await api.stack.client.get_workflow_handle(names.workflow_id(thread)).terminate()
        held.started.clear()
        later = await api.run(thread, input={"trail": ["y"]})
        await held.started.wait()
        assert await api.sdk.runs.cancel(thread, lost, wait=True) == {}
        assert [await api.status(thread, run) for run in (lost, later)] == ["interrupted", "running"]
        held.go.set()
        assert (await api.stack.ended(later))["status"] == "success"
        assert (await api.http.get(f"/threads/{thread}")).json()["status"] == "idle"
