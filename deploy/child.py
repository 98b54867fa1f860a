"""Owns one process of the local stack: starts it, starts it again when it dies, and ends it in the end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from adapter.errors import TurnsError
from deploy.parent import Lifeline, signal_with_parent

logger = logging.getLogger(__name__)

USAGE: Final = 2
"""Exit code of a process of ours whose environment is set up wrongly; it said so in one line."""
TRIES: Final = 3
"""Deaths in a row, before a process ever answered, after which the start is given up."""
FIRST_DELAY: Final = 0.2
LONGEST_DELAY: Final = 5.0  # a developer waits for it
HEALTHY: Final = 10.0
"""Seconds after which a process counts as well again, so that its next death is a first one."""
POLL: Final = 0.05
KILL_GRACE: Final = 5.0
"""Seconds for a kill signal other than SIGKILL, which a process that hangs does not get to see."""


class StackFailed(TurnsError):
    """A part of the local stack does not start; the stack stops."""


class Part(Protocol):
    """What knows one of the stack's programs: how it is started and when it answers."""

    async def prepare(self) -> None:
        """Clears what an earlier life left behind; called before each start."""
        ...

    async def answers(self) -> bool:
        """Tells whether the program does its work."""
        ...


@dataclass(frozen=True)
class Command:
    """How a process is started and ended.

    Attributes:
        name: what log lines call it.
        argv: program and arguments.
        environment: variables on top of this process's own.
        log: file that gets its output; without one its lines go where ours go.
        user: system user to run as, when we are root and it must not be.
        ours: it is this command line again, and watches its parent itself (see `deploy.parent`).
        inherits: file descriptors it gets, under the same numbers.
        stop_signal: what asks it to end in order.
        kill_signal: what ends it now; it also gets this one when we are killed ourselves.
        grace: seconds it may take to end in order, before it is killed.
    """

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    log: Path | None = None
    user: str | None = None
    ours: bool = False
    inherits: tuple[int, ...] = ()
    stop_signal: signal.Signals = signal.SIGTERM
    kill_signal: signal.Signals = signal.SIGKILL
    grace: float = 10.0


class Child:
    """A supervised process. After `start` it is running or about to run again, until `stop`."""

    def __init__(self, command: Command, part: Part) -> None:
        self.command = command
        self.part = part
        self._process: asyncio.subprocess.Process | None = None
        self._lifeline: Lifeline | None = None
        self._supervision: asyncio.Task[None] | None = None
        self._stopping = False
        self._answered = False
        self._deaths = 0  # in a row
        self._last_exit: int | None = None

    @property
    def name(self) -> str:
        """What log lines call it."""
        return self.command.name

    async def start(self, within: float) -> None:
        """Starts the process and returns when it answers.

        Raises:
            StackFailed: it died again and again, or did not answer within that many seconds.
        """
        self._supervision = asyncio.create_task(self._supervise(), name=self.name)
        deadline = time.monotonic() + within
        # Not asked before there is a process: a server that an earlier life left behind would answer for it.
        while self._process is None or not await self.part.answers():
            if self._supervision.done():
                await self._supervision  # raises what ended it
            if self._last_exit == USAGE or self._deaths >= TRIES:
                raise StackFailed(
                    f"{self.name} does not start: it {_ending(self._last_exit)}{self._last_words()}"
                )
            if time.monotonic() > deadline:
                raise StackFailed(f"{self.name} does not answer within {within:.0f} s{self._last_words()}")
            await asyncio.sleep(POLL)
        self._answered = True

    async def stop(self) -> None:
        """Asks the process to end, kills it after its grace, and returns when it is gone."""
        self._stopping = True
        process, supervision = self._process, self._supervision
        if process is not None and process.returncode is None:
            _send(process.pid, self.command.stop_signal)
            if not await _ended(process, self.command.grace):
                logger.warning("%s did not stop within %.0f s; killed", self.name, self.command.grace)
                self.kill()
                if not await _ended(process, KILL_GRACE):
                    _kill_group(process.pid)
                    await process.wait()
        if supervision is not None:
            supervision.cancel()
            await asyncio.gather(supervision, return_exceptions=True)  # `start` has raised its error already

    def kill(self) -> None:
        """Ends the process now, with everything it started."""
        self._stopping = True
        process = self._process
        if process is None or process.returncode is not None:
            return
        if self.command.kill_signal is signal.SIGKILL:
            _kill_group(process.pid)
        else:
            _send(process.pid, self.command.kill_signal)

    async def _supervise(self) -> None:
        while not self._stopping:
            born = time.monotonic()
            try:
                ending = _ending(await self._live())
            except Exception as exc:
                if not self._answered:
                    raise
                # Whatever it is: a task that ended here would leave the process dead and nobody to say so.
                ending = f"cannot be started ({type(exc).__name__}: {exc})"
            if self._stopping:
                return
            self._deaths = 1 if time.monotonic() - born > HEALTHY else self._deaths + 1
            delay = min(FIRST_DELAY * 2 ** (self._deaths - 1), LONGEST_DELAY)
            if self._answered:
                logger.warning("%s %s; starting it again in %.1f s", self.name, ending, delay)
            await asyncio.sleep(delay)

    async def _live(self) -> int:
        await self.part.prepare()
        try:
            process = await self._spawn()
            self._last_exit = await process.wait()
            _kill_group(process.pid)  # what it started and left behind
            return self._last_exit
        finally:
            if self._lifeline is not None:
                self._lifeline.close()
                self._lifeline = None

    async def _spawn(self) -> asyncio.subprocess.Process:
        command = self.command
        environment = {**os.environ, **command.environment}
        if command.ours:
            self._lifeline = Lifeline()
            environment.update(self._lifeline.variables())
        with contextlib.ExitStack() as stack:
            if self._lifeline is not None:
                stack.callback(self._lifeline.started)
            output = stack.enter_context(command.log.open("ab")) if command.log else None
            self._process = await asyncio.create_subprocess_exec(
                *command.argv,
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                user=command.user,
                group=_group_of(command.user),
                extra_groups=[] if command.user else None,
                # A group of its own: Ctrl-C in the terminal reaches the supervisor only, which stops the
                # parts in order; and what a process started can be killed with it.
                start_new_session=True,
                pass_fds=(*command.inherits, *((self._lifeline.child_end,) if self._lifeline else ())),
                preexec_fn=None if command.ours else signal_with_parent(command.kill_signal),
            )
        return self._process

    def _last_words(self) -> str:
        if self.command.log is None:
            return " (see its lines above)"
        with contextlib.suppress(OSError):
            lines = self.command.log.read_text("utf-8", errors="replace").split("\n")
            words = [line.strip() for line in lines if line.strip()]
            if words:
                return f": {words[-1]} (all of it: {self.command.log})"
        return f" (see {self.command.log})"


def _group_of(user: str | None) -> int | None:
    if user is None:
        return None
    import pwd

    return pwd.getpwnam(user).pw_gid


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


async def _ended(process: asyncio.subprocess.Process, within: float) -> bool:
    try:
        await asyncio.wait_for(process.wait(), within)
    except TimeoutError:
        return False
    return True


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: EPERM for a group of zombies
        os.killpg(leader, signal.SIGKILL)


def _ending(code: int | None) -> str:
    if code is None:
        return "is not running"
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
