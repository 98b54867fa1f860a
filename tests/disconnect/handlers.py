"""Owns the handlers people write by hand: LangGraph's own saver, and the run inside the web process.

Four shapes, which differ only in what ties the run to the response. Each is served by
`uvicorn --workers 4 --factory tests.disconnect.handlers:create_app`; the environment says which one it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, Final, TypeAlias

import orjson
from fastapi import FastAPI
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool
from pydantic import BaseModel
from starlette.responses import StreamingResponse

SHAPE: Final = "DISCONNECT_SHAPE"

Chunks: TypeAlias = AsyncIterator[Any]
Queue: TypeAlias = "asyncio.Queue[Any | None]"
Shape: TypeAlias = Callable[[Chunks], AsyncGenerator[bytes]]

# Kept so that a task that nobody awaits is not collected while it runs.
_running: set[asyncio.Task[None]] = set()


async def inline(chunks: Chunks) -> AsyncGenerator[bytes]:
    """The response's own generator runs the graph."""
    async for chunk in chunks:
        yield _frame(chunk)


async def detached(chunks: Chunks) -> AsyncGenerator[bytes]:
    """A task runs the graph, the response reads a queue."""
    queue: Queue = asyncio.Queue()
    task = asyncio.create_task(_fill(queue, chunks))
    _running.add(task)
    task.add_done_callback(_running.discard)
    async for chunk in _read(queue):
        yield _frame(chunk)


async def shielded_run(chunks: Chunks) -> AsyncGenerator[bytes]:
    """As `detached`, but the response waits for the run, shielded, before it ends."""
    queue: Queue = asyncio.Queue()
    task = asyncio.create_task(_fill(queue, chunks))
    try:
        async for chunk in _read(queue):
            yield _frame(chunk)
    finally:
        await asyncio.shield(task)


async def shielded_step(chunks: Chunks) -> AsyncGenerator[bytes]:
    """As `inline`, but the step under way is shielded."""
    end = object()
    while (chunk := await asyncio.shield(anext(chunks, end))) is not end:
        yield _frame(chunk)


SHAPES: Final[dict[str, Shape]] = {
    "inline": inline,
    "detached": detached,
    "shielded run": shielded_run,
    "shielded step": shielded_step,
}


async def _fill(queue: Queue, chunks: Chunks) -> None:
    try:
        async for chunk in chunks:
            queue.put_nowait(chunk)
    finally:
        queue.put_nowait(None)


async def _read(queue: Queue) -> AsyncGenerator[Any]:
    while (chunk := await queue.get()) is not None:
        yield chunk


def _frame(chunk: Any) -> bytes:
    return b"event: values\r\ndata: " + orjson.dumps(chunk, default=_plain) + b"\r\n\r\n"


def _plain(value: Any) -> Any:
    if isinstance(value, BaseMessage):
        return value.model_dump()
    raise TypeError(f"{type(value).__name__} is not JSON")


class Body(BaseModel):
    """What these handlers read of a run's request."""

    input: dict[str, Any]


def create_app() -> FastAPI:
    """Returns the application of the shape that the environment names."""
    # Here, since the examples are on the path of the served processes only.
    from deploy.examples.booking.graph import graph

    shape = SHAPES[os.environ[SHAPE]]
    pool: AsyncConnectionPool[AsyncConnection[DictRow]] = AsyncConnectionPool(
        os.environ["DATABASE_URL"],
        open=False,
        max_size=10,
        connection_class=AsyncConnection[DictRow],
        kwargs={"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row},
    )

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with pool:
            app.state.graph = graph.builder.compile(checkpointer=AsyncPostgresSaver(pool), name=graph.name)
            yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/threads/{thread_id}/runs/stream")
    async def stream(thread_id: str, body: Body) -> StreamingResponse:
        chunks = app.state.graph.astream(
            body.input, {"configurable": {"thread_id": thread_id}}, stream_mode="values"
        )
        return StreamingResponse(shape(chunks), media_type="text/event-stream")

    return app
