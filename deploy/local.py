"""Owns `turns dev`: the whole stack on this machine, up in order, supervised, down in order.

PostgreSQL and Temporal first, the schema next, workers and the API last; a configured server of either kind
takes the embedded one's place. Each process is a `deploy.child.Child`; what our own ones run is in
`deploy.processes`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Coroutine
from typing import Any, Final

import click
from temporalio.client import Client

from adapter.settings import Settings
from deploy.child import Child, Command, Part
from deploy.environment import exported
from deploy.own import Api, Worker, graphs_of_project, run_once, url_of_api
from deploy.postgres import EmbeddedPostgres
from deploy.preflight import DataDirLock, bind
from deploy.temporal import DevServer, connect, profile

logger = logging.getLogger(__name__)

KILLED: Final = 130
"""Exit code after the second Ctrl-C."""
STARTS_WITHIN: Final = 60.0
"""Seconds one part may take until it answers. The slowest seen: PostgreSQL's recovery after a crash."""
SPARE_CONNECTIONS: Final = 20
"""PostgreSQL connections for migrations, psql, another `turns worker`, and PostgreSQL's own reserve."""
BACKLOG: Final = 2048
"""Connections that may wait while the API's processes are busy or start."""
BESIDE_POOL: Final = 10
"""PostgreSQL connections a process has beside its pool: its store's, its listener."""


async def dev(settings: Settings, *, allow_public: bool, began: float) -> int:
    """Runs the stack until a signal ends it; returns the exit code.

    Args:
        settings: the stack's.
        allow_public: whether the operator insists on an address that other machines reach.
        began: when the command did, by the monotonic clock.

    Raises:
        ConfigError: something is set up wrongly; nothing was started, or it was stopped again.
        StackFailed: a part does not start.
    """
    with DataDirLock(settings.data_dir):
        stack = LocalStack(settings, allow_public=allow_public)
        stop = _listen_for_signals(stack)
        up = asyncio.create_task(stack.up())
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({up, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if up.done():
                click.echo(stack.ready_block(up.result(), time.monotonic() - began))
                await stopping
        finally:
            up.cancel()
            stopping.cancel()
            await asyncio.gather(up, stopping, return_exceptions=True)
            await stack.down()
    return KILLED if stack.killed else 0


def _listen_for_signals(stack: LocalStack) -> asyncio.Event:
    """Returns what the first signal to stop sets; the second one kills."""
    stop = asyncio.Event()

    def stop_or_kill() -> None:
        if stop.is_set():
            logger.warning("killing everything")
            stack.kill()
        else:
            logger.info("stopping; once more kills")
            stop.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop_or_kill)
    return stop


class LocalStack:
    """The parts of one stack. `down` may be called at any time, also after `up` failed or was cancelled.

    Raises:
        ConfigError: a port is in use, or Temporal's own configuration cannot be read.
    """

    def __init__(self, settings: Settings, *, allow_public: bool) -> None:
        self.settings = settings
        self.killed = False
        self._profile = profile()
        self._environment = {**os.environ, **exported(settings), "TURNS_ALLOW_PUBLIC": str(int(allow_public))}
        if not self._profile.address:
            bind("127.0.0.1", settings.temporal_port, "--temporal-port").close()
            bind("127.0.0.1", settings.ui_port, "--ui-port").close()
        self._listener = bind(settings.host, settings.port, "--port")
        # In the order they come up; they go down the other way round.
        self._children: dict[str, list[Child]] = {"postgres": [], "temporal": [], "worker": [], "api": []}

    async def up(self) -> list[str]:
        """Starts everything and returns the names of the project's graphs once all of it answers."""
        graphs = await graphs_of_project(self._environment)
        # A configured server that is not there is found out before ours are started.
        configured = await connect(self._profile.address, self._profile) if self._profile.address else None
        started, _ = await _all_or_none(self._temporal(configured), self._database())
        await self._processes(started)
        return graphs

    async def down(self) -> None:
        """Stops everything in the order that loses least: the API, the workers, then the servers they use."""
        self._listener.close()  # who connects from now on is refused, not kept waiting
        for children in reversed(self._children.values()):
            await asyncio.gather(*(child.stop() for child in children))

    def kill(self) -> None:
        """Ends everything at once."""
        self.killed = True
        for children in self._children.values():
            for child in children:
                child.kill()

    async def _database(self) -> None:
        settings = self.settings
        if not settings.database_url:
            processes = settings.workers + settings.api_workers
            postgres = EmbeddedPostgres(
                settings.data_dir,
                connections=processes * (settings.pool_size + BESIDE_POOL) + SPARE_CONNECTIONS,
            )
            await asyncio.to_thread(postgres.initialise)
            await self._start("postgres", postgres.command(), postgres)
            self._environment["DATABASE_URL"] = postgres.url
        await run_once("the migration", "migrate", environment=self._environment)

    async def _temporal(self, configured: Client | None) -> Client:
        if configured is not None:
            return configured
        server = DevServer(self.settings, self._profile)
        await self._start("temporal", server.command(), server)
        self._environment.update(server.environment())
        assert server.client is not None
        return server.client

    async def _processes(self, client: Client) -> None:
        workers = [
            Worker(number, self.settings, self._environment, client)
            for number in range(1, self.settings.workers + 1)
        ]
        self._listener.listen(BACKLOG)
        apis = [
            Api(number, self.settings, self._environment, self._listener.fileno())
            for number in range(1, self.settings.api_workers + 1)
        ]
        await _all_or_none(
            *(self._start("worker", worker.command(), worker) for worker in workers),
            *(self._start("api", api.command(), api) for api in apis),
        )

    async def _start(self, kind: str, command: Command, part: Part) -> None:
        child = Child(command, part)
        self._children[kind].append(child)
        await child.start(STARTS_WITHIN)

    def ready_block(self, graphs: list[str], seconds: float) -> str:
        """Returns what a newcomer needs next: where things are, and a request to copy."""
        url = url_of_api(self.settings)
        temporal = self._profile.address or f"http://127.0.0.1:{self.settings.ui_port}"
        graph = "support" if "support" in graphs or not graphs else graphs[0]
        return f"""
Ready after {seconds:.1f} s. Ctrl-C stops; what is in flight goes on at the next start.

  API       {url}
  Temporal  {temporal}
  Graphs    {", ".join(graphs)}
  Data      {self.settings.data_dir if self.settings.database_url is None else "PostgreSQL at DATABASE_URL"}

  curl -N {url}/runs/stream -H 'content-type: application/json' -d '{{
    "assistant_id": "{graph}", "stream_mode": "messages-tuple",
    "input": {{"messages": [{{"role": "user", "content": "Hello, who are you?"}}]}}}}'
"""


async def _all_or_none(*work: Coroutine[Any, Any, Any]) -> list[Any]:
    """Runs all of it at once and returns the results; the first failure cancels the rest and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
