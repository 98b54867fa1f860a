"""Strategy "interrupt": what runs is stopped, what waits never begins, what was done is kept."""

from __future__ import annotations

from tests.api.graphs import Held
from tests.api.serving import serving


async def test_cuts_in(database_url: str, temporal: str) -> None:
    held = Held()
    async with serving(database_url, temporal, {"graph": held.graph()}) as api:
        thread = await api.thread()
        first = await api.run(thread, input={"trail": ["first"]})
        await held.started.wait()
        waiting = await api.run(thread, input={"trail": ["waiting"]})
        held.started.clear()
        last = await api.run(thread, input={"trail": ["last"]}, multitask_strategy="interrupt")
        await held.started.wait()
        assert await api.status(thread, first) == "interrupted"
        assert await api.status(thread, waiting) == "interrupted"
        held.go.set()
        row = await api.stack.ended(last)
        assert row["status"] == "success"
        values = (await api.http.get(f"/threads/{thread}/state")).json()["values"]
        assert values["trail"] == ["first", "last", "hold", "after"]
        run = (await api.http.get(f"/threads/{thread}/runs/{last}")).json()
        assert run["multitask_strategy"] == "interrupt"
