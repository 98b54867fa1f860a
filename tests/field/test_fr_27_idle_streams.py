"""FR-27: streams that wait hold no database connection, however many they are."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from tests.api.graphs import Held
from tests.api.serving import first_events, serving


@pytest.mark.slow
async def test_two_hundred(database_url: str, temporal: str) -> None:
    held = Held()
    async with serving(database_url, temporal, {"graph": held.graph()}, pool_size=3, sse_heartbeat=30) as api:
        thread = await api.thread()
        run = await api.run(thread, input={"trail": []}, stream_mode=["values"])
        await held.started.wait()
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=api.url, timeout=30, limits=limits) as http:
            seen = asyncio.Semaphore(0)

            async def watch() -> str:
                url = f"/threads/{thread}/runs/{run}/stream"
                async with http.stream("GET", url, headers={"Last-Event-ID": "-1"}) as answered:
                    lines = answered.aiter_raw()
                    await first_events(lines, 2)
                    seen.release()
                    return str((await first_events(lines, 10))[-1].data)

            watching = [asyncio.create_task(watch()) for _ in range(200)]
            for _ in watching:
                await seen.acquire()
            await asyncio.sleep(0.2)
            stats = api.app.state.parts.pool.get_stats()
            assert stats["pool_available"] == stats["pool_size"] <= 3
            assert stats.get("requests_waiting", 0) == 0
            held.go.set()
            assert set(await asyncio.gather(*watching)) == {"{'trail': ['hold', 'after'], 'n': 1}"}
