"""Owns one run of the bench: the servers, the contenders that can be had, and rounds in which all have their turn."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import psutil
import psycopg

from tests import servers
from tests.bench.contenders.aegra import Aegra
from tests.bench.contenders.bare import Bare
from tests.bench.contenders.base import Contender, Servers, Setup
from tests.bench.contenders.ours import Ours, OursWithoutHttp
from tests.bench.contenders.plain import Plain
from tests.bench.contenders.plugin import Plugin
from tests.bench.environments import NotInstalled, python_of
from tests.bench.measure import ORDER, Measured

CLASSES: Mapping[str, type[Contender]] = {
    "ours": Ours,
    "plain": Plain,
    "plugin": Plugin,
    "aegra": Aegra,
    "bare": Bare,
}
# The environments of those that do not run in ours.
ENVIRONMENTS = {"plain": "baselines", "plugin": "baselines", "aegra": "aegra", "bare": "baselines"}
# It runs no graphs: only scenarios that compare whole turns measure it.
_BARE = "bare"
_WARM_UP = 5


@dataclass
class Bench:
    """What scenarios measure with.

    Attributes:
        servers: PostgreSQL and Temporal.
        pythons: the interpreter of each contender that can be had.
        rounds: how often each contender has its turn.
        patience: seconds that a contender may take for one round, unless a scenario says otherwise.
    """

    servers: Servers
    pythons: Mapping[str, Path]
    rounds: int
    patience: float = 120.0

    @contextlib.asynccontextmanager
    async def contenders(
        self,
        measured: Measured,
        setup: Setup,
        *,
        direct: bool = False,
        bare: bool = False,
        warm_up: str | None = "effects_4",
    ) -> AsyncGenerator[list[Contender]]:
        """Yields those that start and run a few turns; `direct` has ours also without HTTP, `bare` Temporal alone."""
        pythons = {name: python for name, python in self.pythons.items() if bare or name != _BARE}
        made = [CLASSES[name](self.servers, python) for name, python in pythons.items()]
        without = [OursWithoutHttp(one) for one in made if direct and isinstance(one, Ours)]
        running: list[Contender] = []

        async def start(one: Contender) -> None:
            try:
                async with asyncio.timeout(self.patience):
                    await one.start(setup)
                    for _ in range(_WARM_UP * setup.workers if warm_up else 0):
                        await one.turn(str(warm_up), str(uuid.uuid4()), "warm up", 4)
            except Exception as exc:
                measured.fail("start", one.name, told(exc))
            else:
                running.append(one)

        try:
            await asyncio.gather(*map(start, made))
            await asyncio.gather(*map(start, without))
            yield sorted(running, key=lambda one: ORDER.index(one.name))
        finally:
            await asyncio.gather(*(one.stop() for one in without))
            await asyncio.gather(*(one.stop() for one in made))

    async def interleave(
        self,
        measured: Measured,
        case: str,
        contenders: Sequence[Contender],
        action: Callable[[Contender], Awaitable[Mapping[str, float]]],
        *,
        rounds: int | None = None,
        patience: float | None = None,
    ) -> None:
        """Measures a case: A B C A B C …; who fails once is not asked again, and what came before does not count."""
        left = list(contenders)
        for number in range(rounds or self.rounds):
            for contender in tuple(left):
                try:
                    async with asyncio.timeout(patience or self.patience):
                        values = await action(contender)
                except Exception as exc:
                    left.remove(contender)
                    measured.fail(case, contender.name, told(exc))
                else:
                    measured.add(case, contender.name, number, values)
        say(f"  {case}")


def told(exc: Exception) -> str:
    """Returns one line on an error."""
    if isinstance(exc, ExceptionGroup):
        return told(cast("ExceptionGroup[Exception]", exc).exceptions[0])
    lines = str(exc).splitlines()
    text = "took too long" if isinstance(exc, TimeoutError) else lines[0] if lines else type(exc).__name__
    return text[:200]


def say(what: str) -> None:
    """Tells on stderr how far it is."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def interpreters(names: Sequence[str], *, own: bool) -> tuple[dict[str, Path], dict[str, str]]:
    """Returns the interpreters of contenders, and why others cannot be had; `own` has all in this environment."""
    found: dict[str, Path] = {}
    missing: dict[str, str] = {}
    for name in names:
        environment = ENVIRONMENTS.get(name)
        try:
            found[name] = Path(sys.executable) if own or environment is None else python_of(environment)
        except NotInstalled as exc:
            missing[name] = str(exc)
    return found, missing


@contextlib.contextmanager
def serving(folder: Path) -> Generator[Servers]:
    """Yields running servers: what PostgreSQL has committed is written, though not forced to the disk."""
    with servers.postgres(crashes=True) as postgres, servers.temporal(log=folder / "temporal.log") as address:
        yield found(postgres, address, folder)


def found(postgres: servers.Postgres, address: str, folder: Path) -> Servers:
    """Returns servers that this process started, with their process ids."""
    with psycopg.connect(postgres.uri) as conn:
        row = conn.execute("SHOW data_directory").fetchone()
    assert row is not None
    postgres_pid = int((Path(row[0]) / "postmaster.pid").read_text().split()[0])
    port = address.rpartition(":")[2]
    temporal_pid = next(child.pid for child in psutil.Process().children() if port in child.cmdline())
    return Servers(postgres, postgres_pid, address, temporal_pid, folder)
