"""FR-24: a client that leaves, or does not read, stalled the run. Here it costs the turn nothing and the API little."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import orjson
import pytest
from fastapi import FastAPI
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from starlette.types import Message, Receive, Scope, Send
from typing_extensions import TypedDict

from api.app import build_app
from tests.api.serving import parse, serving, uvicorn_serving
from tests.servers import free_port

PARTS, PART_BYTES = 300, 100_000
# What the kernel holds for a connection, and what is on its way to it: pages of a megabyte.
MOST_BYTES = 12_000_000


class State(TypedDict, total=False):
    done: bool


def _graph() -> Any:
    async def talk(state: State) -> Any:
        writer = get_stream_writer()
        for number in range(PARTS):
            writer({"part": number, "filler": "x" * PART_BYTES})
            await asyncio.sleep(0)
        return {"done": True}

    builder = StateGraph(State)
    builder.add_node("talk", talk)
    builder.add_edge(START, "talk")
    return builder.compile()


class Counting:
    """An application, and the bytes that it has got rid of."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app
        self.state = app.state
        self.sent = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def counted(message: Message) -> None:
            self.sent += len(message.get("body", b""))
            await send(message)

        await self.app(scope, receive, counted)


@pytest.mark.slow
async def test_the_turn_completes_and_little_is_kept(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"graph": _graph()}) as api:
        thread = await api.thread()
        app: Any = Counting(build_app(api.stack.settings, api.stack.project, client=api.stack.client))
        body = orjson.dumps({"assistant_id": "graph", "input": {}, "stream_mode": ["custom", "values"]})
        head = (
            f"POST /threads/{thread}/runs/stream HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            f"connection: close\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        async with uvicorn_serving(app, port := free_port()):
            with socket.socket() as silent:
                silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
                silent.setblocking(False)
                loop = asyncio.get_running_loop()
                await loop.sock_connect(silent, ("127.0.0.1", port))
                await loop.sock_sendall(silent, head.encode() + body)
                while not (runs := (await api.http.get(f"/threads/{thread}/runs")).json()):
                    await asyncio.sleep(0.01)
                run = runs[0]["run_id"]
                # Somebody else waits for the turn; the one that does not read has no part in it.
                assert (await api.http.get(f"/threads/{thread}/runs/{run}/join")).json() == {"done": True}
                assert app.sent < MOST_BYTES < PARTS * PART_BYTES
        late = await api.http.get(f"/threads/{thread}/runs/{run}/stream", headers={"Last-Event-ID": "-1"})
        parts = [e.data["part"] for e in parse(late.content) if e.name == "custom"]
        assert parts == list(range(PARTS))
