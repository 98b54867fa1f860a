"""Where a join starts: everything, after an id, from now on, or nowhere."""

from __future__ import annotations

from typing import Any

from tests.api.graphs import Ticking, steps
from tests.api.serving import Serving, first_events, fresh, parse, serving

GRAPHS = {"graph": steps("plan")}


async def _names(
    api: Serving, url: str, last: str | None = None, **params: Any
) -> list[tuple[str, str | None]]:
    headers = [] if last is None else [(b"Last-Event-ID", last.encode("latin-1"))]
    answered = await api.http.get(url, headers=headers, params=params)
    assert answered.status_code == 200
    return [(e.name, e.id) for e in parse(answered.content)]


async def test_finished_run(api: Serving) -> None:
    thread = await api.thread()
    await api.stream(thread, input={"trail": []}, stream_mode=["values", "updates", "messages-tuple"])
    run = (await api.http.get(f"/threads/{thread}/runs")).json()[0]["run_id"]
    url = f"/threads/{thread}/runs/{run}/stream"
    everything = [("metadata", "1"), ("values", "2"), ("updates", "3"), ("values", "4")]
    assert await _names(api, url, "-1") == everything
    assert await _names(api, url, "0") == everything
    assert await _names(api, url, "2") == everything[2:]
    assert await _names(api, url, "4") == []
    assert await _names(api, url) == []
    for garbage in ("garbage", "1795985015890-0", "\xb3", "-2", "9" * 40):
        assert await _names(api, url, garbage) == []
    assert await _names(api, url, "-1", stream_mode="updates") == [("updates", "3")]
    both = [("values", "2"), ("updates", "3"), ("values", "4")]
    assert await _names(api, url, "-1", stream_mode=["updates", "values"]) == both


async def test_unknown_run(api: Serving) -> None:
    for thread in (await api.thread(), fresh()):
        answered = await api.http.get(f"/threads/{thread}/runs/{fresh()}/stream")
        assert answered.status_code == 200
        expected = 'event: error\r\ndata: {"error":"HTTPException","message":"404: Run not found"}\r\n\r\n'
        assert answered.content == expected.encode()


async def test_running_run_from_now_on(database_url: str, temporal: str) -> None:
    ticking = Ticking()
    async with serving(database_url, temporal, {"graph": ticking.graph()}) as api:
        thread = await api.thread()
        run = await api.run(thread, input={"trail": []}, stream_mode=["custom"])
        url = f"/threads/{thread}/runs/{run}/stream"
        ticking.ticks.put_nowait(1)
        async with api.http.stream("GET", url, headers={"Last-Event-ID": "-1"}) as from_start:
            await first_events(from_start.aiter_raw(), 2)
            async with api.http.stream("GET", url) as live:
                ticking.ticks.put_nowait(2)
                assert [e.data for e in await first_events(live.aiter_raw(), 1)] == [{"tick": 2}]
        ticking.ticks.put_nowait(None)
        await api.stack.ended(run)
