"""A listening connection that dies costs no event: everybody looks again once there is a new one."""

from __future__ import annotations

import asyncio

import psycopg

from tests.api.graphs import Ticking
from tests.api.serving import first_events, parse, serving


async def test_reconnects(database_url: str, temporal: str) -> None:
    ticking = Ticking()
    async with serving(database_url, temporal, {"graph": ticking.graph()}, sse_heartbeat=60) as api:
        thread = await api.thread()
        body = {"assistant_id": "graph", "input": {"n": 1}, "stream_mode": ["custom"]}
        async with api.http.stream("POST", f"/threads/{thread}/runs/stream", json=body) as answered:
            lines = answered.aiter_raw()
            await first_events(lines, 1)
            async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as conn:
                await conn.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = 'turns-api-events' AND datname = current_database()"
                )
            ticking.ticks.put_nowait(1)
            async with asyncio.timeout(5):
                assert [e.data for e in await first_events(lines, 1)] == [{"tick": 1}]
            ticking.ticks.put_nowait(None)
            assert parse(b"".join([chunk async for chunk in lines])) == []
