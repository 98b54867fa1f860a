"""The API on a free port of this process's event loop, in front of a real worker, and clients for it."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import orjson
import uvicorn
from fastapi import FastAPI
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from api.app import build_app
from deploy.processes import KEEP_ALIVE_SECONDS
from tests.servers import free_port
from tests.stack import Stack, stack


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    name: str
    data: Any
    id: str | None


@dataclass
class Serving:
    """A running API.

    Attributes:
        stack: the worker behind it.
        app: the application.
        url: where it answers.
        http: a raw client.
    """

    stack: Stack
    app: FastAPI
    url: str
    http: httpx.AsyncClient
    _sdk: LangGraphClient | None = None

    @property
    def sdk(self) -> LangGraphClient:
        """The official client, made for who asks for it."""
        if self._sdk is None:
            self._sdk = get_client(url=self.url)
        return self._sdk

    async def aclose(self) -> None:
        """Ends what was made on demand."""
        if self._sdk is not None:
            await self._sdk.aclose()

    async def thread(self, **body: Any) -> str:
        """Creates a thread; returns its id."""
        answered = await self.http.post("/threads", json=body)
        assert answered.status_code == 200, answered.text
        return str(answered.json()["thread_id"])

    async def run(self, thread: str, graph: str = "graph", **body: Any) -> str:
        """Starts a run; returns its id."""
        answered = await self.http.post(f"/threads/{thread}/runs", json={"assistant_id": graph, **body})
        assert answered.status_code == 200, answered.text
        return str(answered.json()["run_id"])

    async def wait(self, thread: str, graph: str = "graph", **body: Any) -> Any:
        """Runs to the end; returns the outcome."""
        answered = await self.http.post(f"/threads/{thread}/runs/wait", json={"assistant_id": graph, **body})
        assert answered.status_code == 200, answered.text
        return answered.json()

    async def stream(self, thread: str, graph: str = "graph", **body: Any) -> list[Event]:
        """Runs to the end; returns the events."""
        return parse(await self.raw_stream(thread, graph, **body))

    async def raw_stream(self, thread: str, graph: str = "graph", **body: Any) -> bytes:
        """Runs to the end; returns the stream's bytes."""
        answered = await self.http.post(
            f"/threads/{thread}/runs/stream", json={"assistant_id": graph, **body}
        )
        assert answered.status_code == 200, answered.text
        return answered.content

    async def status(self, thread: str, run: str) -> str:
        """Returns a run's status."""
        return str((await self.http.get(f"/threads/{thread}/runs/{run}")).json()["status"])


def parse(raw: bytes) -> list[Event]:
    """Returns the events of a stream, without its heartbeats."""
    events: list[Event] = []
    for block in raw.decode().split("\r\n\r\n"):
        lines = [line for line in block.split("\r\n") if line and not line.startswith(":")]
        fields = dict(line.split(": ", 1) for line in lines)
        if fields:
            events.append(Event(fields["event"], orjson.loads(fields["data"]), fields.get("id")))
    return events


class Whole:
    """Takes a stream's bytes as they come; keeps what is there of an event that is not whole.

    Attributes:
        left: those bytes.
    """

    def __init__(self) -> None:
        self.left = b""

    def take(self, chunk: bytes) -> list[Event]:
        """Returns the events that are whole now."""
        whole, end, self.left = (self.left + chunk).rpartition(b"\r\n\r\n")
        return parse(whole + end)


async def first_events(lines: AsyncIterator[bytes], count: int) -> list[Event]:
    """Reads a stream until it has brought so many events."""
    events: list[Event] = []
    whole = Whole()
    async for chunk in lines:
        events += whole.take(chunk)
        if len(events) >= count:
            break
    return events


@contextlib.asynccontextmanager
async def uvicorn_serving(app: FastAPI, port: int) -> AsyncGenerator[str]:
    """Serves an application on this event loop until the block ends."""
    server = _Server(
        uvicorn.Config(
            app,
            host="127.0.0.1",
            port=port,
            http="httptools",
            ws="none",
            log_config=None,
            access_log=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=5,
        )
    )
    task = asyncio.create_task(server.serve())
    while not server.started:
        if task.done():
            await task
            raise AssertionError("the API did not start")
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        app.state.parts.closing.set()
        server.should_exit = True
        await task


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


@contextlib.asynccontextmanager
async def serving(
    database_url: str, address: str, graphs: Mapping[str, Any], **settings: Any
) -> AsyncGenerator[Serving]:
    """Runs a worker and the API in front of it until the block ends."""
    async with stack(database_url, address, graphs, **_settings(settings)) as behind:
        async with in_front_of(behind) as served:
            yield served


def _settings(given: Mapping[str, Any]) -> Any:
    return {"sse_heartbeat": 0.3, **given}


@contextlib.asynccontextmanager
async def in_front_of(behind: Stack, **settings: Any) -> AsyncGenerator[Serving]:
    """Serves a stack; several may serve the same one."""
    given = behind.settings.model_copy(update=settings)
    app = build_app(given, behind.project, client=behind.client)
    async with uvicorn_serving(app, free_port()) as url:
        # Nothing here is encrypted: without the certificates a client is made in no time.
        async with httpx.AsyncClient(base_url=url, timeout=30, verify=False) as http:
            served = Serving(behind, app, url, http)
            try:
                yield served
            finally:
                await served.aclose()


def fresh() -> str:
    """Returns an id that nothing has yet."""
    return str(uuid.uuid4())
