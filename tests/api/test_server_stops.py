"""SIGTERM: streams end cleanly and waiting bodies are cut, no turn is cancelled, and clients come back."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.graphs import Held
from tests.api.serving import Serving, first_events, parse, serving
from tests.servers import free_port

BODY: dict[str, Any] = {"assistant_id": "graph", "input": {"n": 1}, "on_disconnect": "cancel"}


async def _start(api: Serving, folder: Path, temporal: str) -> tuple[asyncio.subprocess.Process, str]:
    """Serves the same threads from a process of its own, as in production."""
    (folder / "graph.py").write_text("from tests.api.graphs import steps\ngraph = steps('hold')\n")
    (folder / "langgraph.json").write_text('{"graphs": {"graph": "./graph.py:graph"}}')
    port = free_port()
    environment = {
        **os.environ,
        "DATABASE_URL": str(api.stack.settings.database_url),
        "TURNS_CONFIG": str(folder / "langgraph.json"),
        "TURNS_TASK_QUEUE": api.stack.settings.task_queue,
        "TEMPORAL_ADDRESS": temporal,
        "PYTHONPATH": os.getcwd(),
    }
    arguments = ["--factory", "api.app:create_app", "--port", str(port), "--timeout-graceful-shutdown", "20"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "uvicorn", *arguments, env=environment, stderr=asyncio.subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    async with httpx.AsyncClient() as http:
        async with asyncio.timeout(30):
            while True:
                try:
                    assert (await http.get(f"{url}/health/ready")).status_code == 200
                    return process, url
                except httpx.ConnectError:
                    await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_stream_and_wait(database_url: str, temporal: str, tmp_path: Path) -> None:
    held = Held()
    async with serving(database_url, temporal, {"graph": held.graph()}) as api:
        process, url = await _start(api, tmp_path, temporal)
        try:
            async with httpx.AsyncClient(base_url=url, timeout=30) as http:
                thread = await api.thread()
                place = f"/threads/{thread}/runs/stream"
                async with http.stream("POST", place, json=BODY) as stream:
                    location = stream.headers["location"]
                    lines = stream.aiter_raw()
                    seen = await first_events(lines, 2)
                    await held.started.wait()
                    async with http.stream("GET", location.replace("/stream", "/join")) as waiting:
                        process.send_signal(signal.SIGTERM)
                        seen += parse(b"".join([chunk async for chunk in lines]))  # ends, without an error
                        with pytest.raises(httpx.RemoteProtocolError):
                            await waiting.aread()
                async with asyncio.timeout(10):
                    await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        run = location.split("/")[4]
        assert await api.status(thread, run) == "running"
        held.go.set()
        rest = await api.http.get(location, headers={"Last-Event-ID": seen[-1].id or ""})
        seen += parse(rest.content)
        assert [e.id for e in seen] == [str(n) for n in range(1, len(seen) + 1)]
        assert seen[-1].data == {"trail": ["hold", "after"], "n": 1}
