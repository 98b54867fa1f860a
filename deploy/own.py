"""Owns the local stack's processes that are this command line again, and how each shows that it works."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from temporalio.client import Client

from activities.stopping import STOP_SECONDS
from adapter.settings import Settings
from deploy.child import USAGE, Command, StackFailed
from deploy.environment import LISTENER_VARIABLE
from deploy.parent import Lifeline
from deploy.preflight import is_loopback
from deploy.temporal import has_worker

SLACK: Final = 5.0
"""Seconds a process gets on top of its own grace before it is killed."""


class AlreadyTold(StackFailed):
    """A process of ours failed and wrote the line about it; its exit code says of which kind it was."""

    def __init__(self, code: int) -> None:
        super().__init__(f"exit code {code}")
        self.code = code


def command_line(*arguments: str) -> tuple[str, ...]:
    """Returns argv of this command line in a new process.

    -P keeps the working directory off the import path: a project may well have a package called `api`.
    """
    return (sys.executable, "-P", "-m", "deploy.cli", *arguments)


@dataclass(frozen=True)
class Worker:
    """A worker process; it works when Temporal sees somebody ask for the task queue's work."""

    number: int
    settings: Settings
    environment: Mapping[str, str]
    temporal: Client

    def command(self) -> Command:
        """Returns how it is started."""
        name = "worker" if self.settings.workers == 1 else f"worker-{self.number}"
        return Command(
            name=name,
            argv=command_line("worker", "--name", name),
            environment=self.environment,
            ours=True,
            grace=self.settings.shutdown_grace + STOP_SECONDS + SLACK,
        )

    async def prepare(self) -> None:
        """Nothing stays behind: what a lost worker did not finish, Temporal gives to the next."""

    async def answers(self) -> bool:
        """Tells whether a worker polls."""
        return await has_worker(self.temporal, self.settings.task_queue)


@dataclass(frozen=True)
class Api:
    """An API process; all of them accept from the one socket that the supervisor listens on.

    The supervisor holds the port: a client that connects while a process is being started again waits a moment
    and is not refused, and nobody else can take the port in between.
    """

    number: int
    settings: Settings
    environment: Mapping[str, str]
    listener: int

    def command(self) -> Command:
        """Returns how it is started."""
        name = "api" if self.settings.api_workers == 1 else f"api-{self.number}"
        return Command(
            name=name,
            argv=command_line("api", "--name", name),
            environment={**self.environment, LISTENER_VARIABLE: str(self.listener)},
            ours=True,
            inherits=(self.listener,),
            grace=self.settings.shutdown_grace + SLACK,
        )

    async def prepare(self) -> None:
        """Nothing stays behind: the kernel closed what the process had."""

    async def answers(self) -> bool:
        """Tells whether GET /ok answers 200."""
        return await answers_ok(url_of_api(self.settings))


def url_of_api(settings: Settings) -> str:
    """Returns where a client on this machine finds the API."""
    host = settings.host
    if not is_loopback(host):
        host = "::1" if ":" in host else "127.0.0.1"
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"


async def answers_ok(url: str, timeout: float = 2.0) -> bool:  # noqa: ASYNC109  the caller's own loop has no deadline
    """Tells whether GET /ok of the API answers 200."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    try:
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
            with contextlib.closing(writer):
                writer.write(f"GET /ok HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode())
                return b" 200 " in await reader.readline()
    except (OSError, TimeoutError):
        return False


async def run_once(name: str, *arguments: str, environment: Mapping[str, str]) -> str:
    """Runs this command line in a process of its own, to its end, and returns what it wrote to stdout.

    Raises:
        AlreadyTold: it failed, and its line about that is on stderr already.
    """
    lifeline = Lifeline()
    try:
        process = await asyncio.create_subprocess_exec(
            *command_line(*arguments),
            env={**environment, **lifeline.variables()},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
            pass_fds=(lifeline.child_end,),
        )
        lifeline.started()
        output, _ = await process.communicate()
    finally:
        lifeline.close()  # also ends it when we were cancelled
    if process.returncode == 0:
        return output.decode("utf-8", errors="replace")
    if process.returncode is not None and process.returncode < 0:
        raise StackFailed(f"{name} was ended by {signal.Signals(-process.returncode).name}")
    raise AlreadyTold(process.returncode or USAGE)


async def graphs_of_project(environment: Mapping[str, str]) -> list[str]:
    """Loads the project in another process, since that runs the user's code, and returns its graphs' names.

    Raises:
        AlreadyTold: the project cannot be loaded.
    """
    output = await run_once("the project check", "check-project", environment=environment)
    return list(cast("dict[str, list[str]]", json.loads(output))["graphs"])
