"""A client that comes back with its last event id misses nothing and repeats nothing, on any API process."""

from __future__ import annotations

from tests.api.graphs import Ticking
from tests.api.serving import first_events, in_front_of, parse, serving


async def test_cut_and_rejoin_elsewhere(database_url: str, temporal: str) -> None:
    ticking = Ticking()
    async with serving(database_url, temporal, {"graph": ticking.graph()}) as api:
        async with in_front_of(api.stack) as other:
            thread = await api.thread()
            body = {"assistant_id": "graph", "input": {"trail": ["x"]}, "stream_mode": ["custom", "values"]}
            for number in range(3):
                ticking.ticks.put_nowait(number)
            async with api.http.stream("POST", f"/threads/{thread}/runs/stream", json=body) as answered:
                seen = await first_events(answered.aiter_raw(), 5)
                location = answered.headers["location"]
            for number in range(3, 6):
                ticking.ticks.put_nowait(number)
            async with other.http.stream(
                "GET", location, headers={"Last-Event-ID": seen[-1].id or ""}
            ) as again:
                assert again.headers["content-location"] == location.removesuffix("/stream")
                seen += await first_events(again.aiter_raw(), 3)
            for number in (6, None):
                ticking.ticks.put_nowait(number)
            rest = await api.http.get(location, headers={"Last-Event-ID": seen[-1].id or ""})
            seen += parse(rest.content)
            whole = parse((await other.http.get(location, headers={"Last-Event-ID": "-1"})).content)
            assert seen == whole
            assert [e.data["tick"] for e in whole if e.name == "custom"] == list(range(7))
            assert [e.id for e in whole] == [str(n) for n in range(1, len(whole) + 1)]
