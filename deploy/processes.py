"""Owns what our own processes run: a worker, the API, a migration, a check of the project."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import queue
import signal
import socket
import sys
import threading
import time
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import uvloop

from adapter.errors import ConfigError, StoreUnavailable, TurnsError
from adapter.settings import Settings
from deploy import logs
from deploy.environment import (
    LISTENER_VARIABLE,
    Flags,
    asks_who_calls,
    join_local_stack,
    settings_for,
    with_database,
)
from deploy.parent import end_with_parent
from deploy.preflight import refuse_public

if TYPE_CHECKING:
    from adapter.graphs import Project

logger = logging.getLogger(__name__)

END_SECONDS: Final = 3.0
"""Seconds a worker may take to close its connections after its last attempt has ended or was handed back."""

KEEP_ALIVE_SECONDS: Final = 75
"""Seconds a connection may wait for its next request. Longer than clients and balancers keep one (httpx 5, nginx and
AWS 60): whoever closes first must not be the server, or a request that is on its way meanwhile is lost."""


def worker(flags: Flags, name: str) -> None:
    """Runs one worker until SIGTERM or SIGINT; a second signal ends it at once.

    Raises:
        ConfigError: no PostgreSQL is there to use, or the project cannot be loaded.
    """
    end_with_parent()
    logs.setup(name)
    settings = join_local_stack(settings_for(flags))
    from adapter.graphs import load_project

    project = load_project(settings.config)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            try:
                stopped = runner.run(_work(settings, project))
            except SystemExit:
                # From deep inside a node: the event loop is gone, and an orderly end would wait for it for ever.
                logger.critical("a node ended the process with sys.exit")
                os._exit(1)
            if not stopped:
                os._exit(1)  # what was handed back still runs here, and an orderly end would wait for it
    except TurnsError:
        raise
    except Exception as exc:
        logger.exception("the worker failed")
        raise TurnsError(f"{name} failed: {exc}") from exc


async def _work(settings: Settings, project: Project) -> bool:
    from activities import stopping, worker
    from adapter.garbage import collecting_seldom

    stop = asyncio.Event()
    _stop_on_signal(stop, settings.shutdown_grace + stopping.STOP_SECONDS + END_SECONDS)
    with collecting_seldom():  # what is imported stays
        return await worker.run(settings, project, stop)


def _stop_on_signal(stop: asyncio.Event, within: float) -> None:
    """Sets `stop` at the first SIGTERM or SIGINT; the second one ends the process at once.

    Args:
        stop: told to the event loop.
        within: seconds after which the process ends in any case, even when a node keeps the event loop or a thread.
    """
    loop = asyncio.get_running_loop()
    told: queue.SimpleQueue[None] = queue.SimpleQueue()  # may be used in a signal handler; a lock may not

    def end() -> None:
        told.get()
        time.sleep(within)
        logger.critical("a node does not stop; the process ends without it")
        os._exit(1)

    def stop_once(number: int, frame: FrameType | None) -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_DFL)
        told.put(None)
        loop.call_soon_threadsafe(stop.set)

    threading.Thread(target=end, name="end", daemon=True).start()
    for each in (signal.SIGINT, signal.SIGTERM):
        # Not the event loop's own handlers: a node that blocks the loop would keep them from being called.
        signal.signal(each, stop_once)


def api(flags: Flags, name: str, *, allow_public: bool) -> None:
    """Serves the API until SIGTERM or SIGINT.

    Raises:
        ConfigError: no PostgreSQL is there to use, or the address is public.
        TurnsError: the application does not start; uvicorn has logged why.
    """
    end_with_parent()
    logs.setup(name)
    settings = settings_for(flags)
    refuse_public(settings.host, allowed=allow_public, authenticated=asks_who_calls(settings))
    settings = join_local_stack(settings)
    import uvicorn

    listener = os.environ.pop(LISTENER_VARIABLE, None)
    options: dict[str, Any] = {
        "factory": True,
        "loop": "uvloop",
        "http": "httptools",
        "access_log": False,
        "log_config": None,
        "timeout_keep_alive": KEEP_ALIVE_SECONDS,
        "timeout_graceful_shutdown": round(settings.shutdown_grace),
    }
    if listener is not None:
        server = uvicorn.Server(uvicorn.Config("api.app:create_app", **options))
        server.run([socket.socket(fileno=int(listener))])
        if not server.started:
            raise TurnsError(f"{name} does not start")
    else:
        uvicorn.run(
            "deploy.processes:create_app",
            host=settings.host,
            port=settings.port,
            workers=settings.api_workers,
            # uvicorn kills a process of its own that does not answer a ping in time, and importing the graphs
            # on a loaded machine takes longer than its five seconds.
            timeout_worker_healthcheck=60,
            **options,
        )


def create_app() -> Any:
    """Returns the API's application.

    uvicorn calls this in each process it serves from. One that it spawned knows nothing of what `api` set up
    beside the environment: neither the log lines nor whose death it must not survive.
    """
    end_with_parent()
    logs.setup("api")
    from api.app import create_app

    return create_app()


def migrate(flags: Flags) -> None:
    """Brings the database to this version's schema.

    Raises:
        ConfigError: no PostgreSQL is there to use, or its schema is ahead of this version.
    """
    end_with_parent()
    settings = with_database(settings_for(flags, project_needed=False))
    from adapter.store import schema

    assert settings.database_url is not None
    try:
        asyncio.run(schema.migrate(settings.database_url))
    except StoreUnavailable as exc:
        raise ConfigError(f"{exc}; start it, or correct DATABASE_URL") from None


def check_project(flags: Flags) -> None:
    """Loads the project and writes its graphs' names to stdout, as JSON.

    Raises:
        ConfigError: it cannot be loaded.
    """
    end_with_parent()
    settings = settings_for(flags)
    # The graphs' modules may print while they are imported; stdout is for the answer alone.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answer, contextlib.redirect_stdout(sys.stderr):
        os.dup2(2, 1)
        from adapter.graphs import load_project

        try:
            project = load_project(settings.config)
        except SystemExit:
            raise ConfigError("a graph's module ended the process while it was imported") from None
        json.dump({"graphs": project.graph_ids}, answer)
