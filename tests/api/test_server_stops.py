"""SIGTERM: streams end cleanly and waiting bodies are cut, no turn is cancelled, and clients come back."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from tests.api.graphs import Held, Ticking
from tests.api.serving import Serving, first_events, parse, serving
from tests.processes import Workers
from tests.proxy import proxy
from tests.servers import free_port

BODY: dict[str, Any] = {"assistant_id": "graph", "input": {"n": 1}, "on_disconnect": "cancel"}


def _environment(api: Serving, folder: Path, temporal: str, *graphs: str) -> dict[str, str]:
    (folder / "graph.py").write_text("from tests.api.graphs import steps\ngraph = steps('hold')\n")
    named = {name: "./graph.py:graph" for name in graphs}
    (folder / "langgraph.json").write_text(json.dumps({"graphs": named}))
    return {
        "DATABASE_URL": str(api.stack.settings.database_url),
        "TURNS_CONFIG": str(folder / "langgraph.json"),
        "TURNS_TASK_QUEUE": api.stack.settings.task_queue,
        "TEMPORAL_ADDRESS": temporal,
        "PYTHONPATH": os.getcwd(),
    }


async def _start(api: Serving, folder: Path, temporal: str) -> tuple[asyncio.subprocess.Process, str]:
    """Serves the same threads from a process of its own, as in production."""
    port = free_port()
    environment = {**os.environ, **_environment(api, folder, temporal, "graph")}
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


class Answered:
    """Notes which paths an official client got an answer's first line for."""

    def __init__(self, sdk: LangGraphClient) -> None:
        self._paths = list[str]()
        self._more = asyncio.Event()
        sdk.http.client.event_hooks["response"].append(self._note)

    async def _note(self, response: httpx.Response) -> None:
        self._paths.append(response.url.path.rpartition("/")[2])
        self._more.set()

    async def wait_for(self, *ends: str) -> None:
        """Waits until there is an answer for a path with each of these ends."""
        async with asyncio.timeout(30):
            while not set(ends) <= set(self._paths):
                self._more.clear()
                await self._more.wait()


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:Request failed, attempting reconnect"
)  # how the SDK says that it asks again
async def test_the_sdk_goes_on_at_another_process(database_url: str, temporal: str, tmp_path: Path) -> None:
    """A deploy: `turns api` is asked to end while an official client streams, waits and joins through it."""
    ticking, held = Ticking(), Held()
    ticks = list[int]()
    async with serving(database_url, temporal, {"ticking": ticking.graph(), "held": held.graph()}) as api:
        workers = Workers(_environment(api, tmp_path, temporal, "ticking", "held"), tmp_path)
        ports = free_port(), free_port()
        first, second = (workers.start_api(port) for port in ports)
        try:
            await asyncio.gather(first.ready(), second.ready())
            async with proxy(ports[0]) as door, get_client(url=f"http://127.0.0.1:{door.port}") as sdk:
                runs: Any = sdk.runs
                answered = Answered(sdk)
                thread, other = await api.thread(), await api.thread()

                async def stream() -> None:
                    async for part in runs.stream(thread, "ticking", input={}, stream_mode="custom"):
                        if part.event == "custom":
                            ticks.append(part.data["tick"])

                ticking.ticks.put_nowait(0)
                streaming = asyncio.create_task(stream())
                waiting = asyncio.create_task(runs.wait(other, "held", input={"n": 1}))
                await held.started.wait()
                run = (await api.sdk.runs.list(other))[0]["run_id"]
                joining = asyncio.create_task(runs.join(other, run))
                await answered.wait_for("stream", "wait", "join")

                door.target = ports[1]
                first.send_signal(signal.SIGTERM)
                assert await first.ended() == -signal.SIGTERM  # uvicorn passes it on when all has ended
                for number in (1, 2, None):
                    ticking.ticks.put_nowait(number)
                held.go.set()
                await streaming
                assert ticks == [0, 1, 2]
                assert await waiting == await joining == {"trail": ["hold", "after"], "n": 1}
                assert (await api.status(other, run), held.calls) == ("success", 1)
        finally:
            workers.stop()
            workers.tell()
