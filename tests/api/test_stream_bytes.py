"""A stream's headers and bytes are exactly those that clients parse."""

from __future__ import annotations

from tests.api.graphs import steps
from tests.api.serving import serving


async def test_headers_and_bytes(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"graph": steps("plan")}, sse_heartbeat=30) as api:
        thread = await api.thread()
        answered = await api.http.post(
            f"/threads/{thread}/runs/stream",
            json={"assistant_id": "graph", "input": {"trail": ["x"]}, "stream_mode": ["values", "updates"]},
        )
        run = (await api.http.get(f"/threads/{thread}/runs")).json()[0]["run_id"]
        assert answered.status_code == 200
        expected = {
            "content-type": "text/event-stream; charset=utf-8",
            "cache-control": "no-store",
            "connection": "keep-alive",
            "x-accel-buffering": "no",
            "transfer-encoding": "chunked",
            "location": f"/threads/{thread}/runs/{run}/stream",
            "content-location": f"/threads/{thread}/runs/{run}",
        }
        assert {name: answered.headers.get(name) for name in expected} == expected
        blocks = [
            f'event: metadata\r\ndata: {{"run_id":"{run}","attempt":1}}\r\nid: 1\r\n\r\n',
            'event: values\r\ndata: {"trail":["x"]}\r\nid: 2\r\n\r\n',
            'event: updates\r\ndata: {"plan":{"trail":["plan"]}}\r\nid: 3\r\n\r\n',
            'event: values\r\ndata: {"trail":["x","plan"]}\r\nid: 4\r\n\r\n',
        ]
        assert answered.content == "".join(blocks).encode()
