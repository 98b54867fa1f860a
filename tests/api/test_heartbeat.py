"""A silent stream shows that it lives; waiting JSON does, too, and is still JSON."""

from __future__ import annotations

from typing import Any

import orjson

from tests.api.graphs import Held
from tests.api.serving import serving

HEARTBEAT = b": heartbeat\r\n\r\n"


async def test_stream(database_url: str, temporal: str) -> None:
    held = Held()
    async with serving(database_url, temporal, {"graph": held.graph()}, sse_heartbeat=0.1) as api:
        thread = await api.thread()
        body: dict[str, Any] = {"assistant_id": "graph", "input": {"trail": []}, "stream_mode": "updates"}
        raw = b""
        async with api.http.stream("POST", f"/threads/{thread}/runs/stream", json=body) as answered:
            async for chunk in answered.aiter_raw():
                raw += chunk
                if raw.partition(b"metadata")[2].count(HEARTBEAT) == 3:
                    held.go.set()
        assert raw.endswith(b"\r\n\r\n") and b'"after"' in raw


async def test_join(database_url: str, temporal: str) -> None:
    held = Held()
    async with serving(database_url, temporal, {"graph": held.graph()}, sse_heartbeat=0.1) as api:
        thread = await api.thread()
        run = await api.run(thread, input={"trail": []})
        raw = b""
        async with api.http.stream("GET", f"/threads/{thread}/runs/{run}/join") as answered:
            async for chunk in answered.aiter_raw():
                raw += chunk
                if raw == b"\n\n\n":
                    held.go.set()
        assert orjson.loads(raw) == {"trail": ["hold", "after"], "n": 1}
