"""PostgreSQL's connections that die cost no event: everybody looks again once there is a new one; and no request."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

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
            await _end_sessions(database_url, "turns-api-events")
            ticking.ticks.put_nowait(1)
            async with asyncio.timeout(5):
                assert [e.data for e in await first_events(lines, 1)] == [{"tick": 1}]
            ticking.ticks.put_nowait(None)
            assert parse(b"".join([chunk async for chunk in lines])) == []


async def test_requests_find_working_connections(
    database_url: str, temporal: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(database_url, temporal, {"graph": Ticking().graph()}) as api:
        thread = await api.thread()
        await asyncio.gather(*(api.http.get(f"/threads/{thread}") for _ in range(20)))
        with caplog.at_level("INFO", "turns.api"):
            assert await _end_sessions(database_url, "turns-api%") > 2
            async with asyncio.timeout(10):
                while "delivered at once again" not in caplog.text:
                    await asyncio.sleep(0.02)
        for _ in range(10):
            assert (await api.http.get(f"/threads/{thread}")).status_code == 200


async def _end_sessions(database_url: str, name: str) -> int:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as conn:
        ended = await conn.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name LIKE %s AND datname = current_database()",
            (name,),
        )
        return ended.rowcount
