"""Owns the composition of the API: settings, pool, Temporal's client, the listening connection, routes.

A request's walk: `api/routers/runs.py` ► `api/accept.py` ► `api/turn_gateway.py`, and back
`api/event_stream.py` ► `api/sse.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from types import FrameType
from typing import Any, cast

from fastapi import Depends, FastAPI
from langgraph.store.postgres.aio import AsyncPostgresStore
from starlette.middleware.cors import CORSMiddleware

from adapter.errors import ConfigError
from adapter.garbage import collecting_seldom
from adapter.graphs import Project, load_project
from adapter.settings import Settings, load
from adapter.store import schema
from adapter.store.pool import create_pool
from api import errors, temporary
from api.access import check_rules, gate
from api.assistants import Assistants
from api.auth import policy_of
from api.deps import Parts, refuse_nul
from api.documented import check_answers, documented
from api.event_stream import EventHub, EventStreams
from api.routers import assistants as assistant_routes
from api.routers import (
    progress,
    reports,
    run_streams,
    runs,
    several_runs,
    state,
    stateless,
    store,
    system,
    threads,
)
from api.snapshots import Snapshots
from api.turn_gateway import TemporalClient, TurnGateway, connect

log = logging.getLogger("turns.api")

_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY")
_EXPOSED = ("x-pagination-total", "x-pagination-next", "content-location", "location")


def create_app() -> FastAPI:
    """Returns the application of this process's environment; the factory that uvicorn is given.

    Raises:
        ConfigError: the environment or the project is set up wrongly.
    """
    settings = load()
    return build_app(settings, load_project(settings.config))


def build_app(settings: Settings, project: Project, *, client: TemporalClient | None = None) -> FastAPI:
    """Returns the application; nothing is connected before its lifespan starts.

    Args:
        settings: of this process.
        project: the graphs.
        client: Temporal's, or None to connect as the environment says.
    """

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with _parts(settings, project, client) as parts:
            app.state.parts = parts
            with collecting_seldom():
                log.info("API ready: graphs %s", ", ".join(project.graph_ids))
                yield

    app = FastAPI(title="durable-turns", lifespan=lifespan, dependencies=[Depends(refuse_nul), Depends(gate)])
    app.state.settings = settings
    app.state.policy = policy_of(settings, project)
    errors.install(app)
    app.add_middleware(
        CORSMiddleware,
        allow_origins=[origin.strip() for origin in settings.cors_origins.split(",") if origin.strip()],
        allow_methods=_METHODS,
        allow_headers=("*",),
        allow_private_network=True,
        expose_headers=_EXPOSED,
        max_age=600,
    )
    areas = (
        system,
        reports,
        threads,
        state,
        runs,
        run_streams,
        several_runs,
        stateless,
        progress,
        assistant_routes,
        store,
    )
    routers = [area.router for area in areas]
    for router in routers:
        app.include_router(router)
    app.state.routes = check_rules(routers)
    check_answers(app.state.routes)
    app.openapi = lambda: documented(app, routers)
    return app


@contextlib.asynccontextmanager
async def _parts(
    settings: Settings, project: Project, client: TemporalClient | None
) -> AsyncGenerator[Parts]:
    if settings.database_url is None:
        raise ConfigError("no database: set DATABASE_URL, or run `turns dev`")
    await schema.check(settings.database_url)
    closing = asyncio.Event()
    async with create_pool(
        settings.database_url, size=settings.pool_size, name="turns-api", wait=settings.pool_wait
    ) as pool:
        assistants = Assistants(project, pool)
        await assistants.ensure_system()
        gateway = TurnGateway(client or await connect(), pool, settings)
        hub = EventHub(settings.database_url, pool)
        background = [
            asyncio.create_task(hub.listen(), name="events"),
            asyncio.create_task(temporary.delete_for_ever(pool), name="temporary"),
        ]
        try:
            with _told_to_stop(closing.set):
                yield Parts(
                    settings=settings,
                    project=project,
                    pool=pool,
                    hub=hub,
                    streams=EventStreams(pool, hub, idle_seconds=settings.sse_heartbeat),
                    gateway=gateway,
                    assistants=assistants,
                    snapshots=Snapshots(project, pool),
                    store=AsyncPostgresStore(cast("Any", pool)),
                    closing=closing,
                )
        finally:
            closing.set()
            await gateway.close()
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)


@contextlib.contextmanager
def _told_to_stop(stop: Callable[[], None]) -> Generator[None]:
    """Calls `stop` on the event loop when the process is asked to end, before the server does what it does then.

    The server waits for its responses to end before it ends the lifespan, and a stream ends with its turn: the
    streams must learn of the signal themselves.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # no signals arrive here; the lifespan's end is the only one
        return
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def told(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stop)
        handler = before[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    for number in before:
        signal.signal(number, told)
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is told:
                signal.signal(number, handler)
