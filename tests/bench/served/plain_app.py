"""What people write by hand: the graph in a FastAPI handler, with LangGraph's own saver, durability "sync"."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncGenerator
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.responses import Response, StreamingResponse
from graphs import BUILDERS
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

COMPILED: dict[str, Any] = {}


@contextlib.asynccontextmanager
async def _lifespan(_: FastAPI) -> AsyncGenerator[None]:
    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    async with AsyncConnectionPool(
        os.environ["DATABASE_URL"], min_size=1, max_size=10, kwargs=options
    ) as pool:
        saver = AsyncPostgresSaver(pool)  # type: ignore[arg-type]
        for name, builder in BUILDERS.items():
            COMPILED[name] = builder.compile(checkpointer=saver)
        yield


app = FastAPI(lifespan=_lifespan)


async def _asked(thread: str, request: Request) -> tuple[Any, dict[str, Any]]:
    body = orjson.loads(await request.body())
    config = {"configurable": {"thread_id": thread}}
    return COMPILED[body["assistant_id"]], {"input": body["input"], "config": config, "durability": "sync"}


def _plain(value: Any) -> Any:
    if isinstance(value, BaseMessage):
        return value.model_dump()
    raise TypeError


@app.post("/threads/{thread}/runs/wait")
async def wait(thread: str, request: Request) -> Response:
    """Runs a turn; answers with the state."""
    graph, asked = await _asked(thread, request)
    return Response(orjson.dumps(await graph.ainvoke(**asked), default=_plain), media_type="application/json")


@app.post("/threads/{thread}/runs/stream")
async def stream(thread: str, request: Request) -> StreamingResponse:
    """Runs a turn; streams its tokens."""
    graph, asked = await _asked(thread, request)

    async def events() -> AsyncGenerator[bytes]:
        async for message, metadata in graph.astream(**asked, stream_mode="messages"):
            data = orjson.dumps([message, metadata], default=_plain)
            yield b"event: messages\r\ndata: " + data + b"\r\n\r\n"

    return StreamingResponse(events(), media_type="text/event-stream")
