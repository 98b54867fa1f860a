"""Owns the command line of the load: `python -m tests.load` prints two tables, in Markdown."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import psycopg

from tests import servers
from tests.disconnect.tables import machine
from tests.load import cuts, idle
from tests.load.client import Reading
from tests.load.judgement import Judgement, judge, not_kept
from tests.load.served import POOL_SIZE, served

Row = tuple[str, object]


class Load:
    """Plays both on servers of its own; keeps what did not hold."""

    def __init__(self, postgres: servers.Postgres, address: str, folder: Path, seed: int) -> None:
        self.postgres = postgres
        self.address = address
        self.folder = folder
        self.seed = seed
        self.broken: list[str] = []
        self._began = time.monotonic()

    def say(self, what: str) -> None:
        """Tells of progress."""
        print(f"{time.monotonic() - self._began:6.1f} s  {what}", file=sys.stderr, flush=True)

    async def idle(self, options: idle.Options) -> None:
        """Plays streams that wait."""
        async with served(self.postgres.clone(), self.address, self.folder, apis=1) as it:
            played = await idle.play(it, options, self.say)
            waited = await self._judged(it.database_url, played.idle)
            ran = await self._judged(it.database_url, played.active)
        self.broken += not_kept(played, options)
        print(_table(_rows_of_idle(played, waited, ran, options)))

    async def cuts(self, count: int) -> None:
        """Plays clients that die."""
        async with served(self.postgres.clone(), self.address, self.folder, apis=2) as it:
            found = await cuts.play(it, seed=self.seed, cuts=count)
            judged = await self._judged(it.database_url, found.readings)
        self.broken += found.different
        self.say("cuts are done")
        print(_table(_rows_of_cuts(found, judged)))

    async def _judged(self, database_url: str, readings: list[Reading]) -> Judgement:
        found = await judge(database_url, readings)
        self.broken += found.broken
        return found


def _rows_of_idle(
    played: idle.Played, waited: Judgement, ran: Judgement, options: idle.Options
) -> Iterable[Row]:
    window = played.window
    yield "streams that waited, read to their end", f"{waited.complete} of {len(played.idle)}"
    yield (
        f"turns next to them, in {options.waves} waves of {options.active}, complete",
        f"{ran.complete} of {len(played.active)}",
    )
    yield "events read", waited.events + ran.events
    yield "missing, doubled", f"{waited.missing + ran.missing}, {waited.doubled + ran.doubled}"
    yield f"while all waited, for {window.seconds:.0f} s: heartbeats", played.heartbeats
    yield f"connections to PostgreSQL (pool of {POOL_SIZE}, and one that listens)", window.connections
    yield "of them in a statement at a time, mean and most", f"{window.busy_mean:.2f}, {window.busy}"
    yield "held for more than a second", window.held
    yield "processor time of the API, of one CPU", f"{window.cpu_percent:.1f} %"
    for when, much in played.resident.items():
        yield f"memory of the API: {when}", f"{much:.1f} MB"
    grown = 1024 * played.growth(idle.BEFORE, idle.WAITING) / options.idle
    yield "growth for each stream that waits", f"{grown:.0f} KB"
    yield "seed", options.seed


def _rows_of_cuts(found: cuts.Cuts, judged: Judgement) -> Iterable[Row]:
    yield "clients that died and came back", found.made.total()
    yield (
        "of them reading from each API process",
        ", ".join(str(found.made[api]) for api in sorted(found.made)),
    )
    yield "of them inside an event, after the run's end", f"{found.inside}, {found.ended}"
    yield "streams that a killed API process took with it", found.broken
    yield "runs, each read by such clients and by one that stayed", len(found.readings) // 2
    yield "events read", judged.events
    yield "missing, doubled", f"{judged.missing}, {judged.doubled}"
    yield "runs for which both streams are the same", len(found.readings) // 2 - len(found.different)


def _table(rows: Iterable[Row]) -> str:
    return "\n".join(["| | |", "|---|--:|", *(f"| {name} | {value} |" for name, value in rows), ""])


async def play(load: Load, given: argparse.Namespace) -> None:
    """Plays both."""
    await load.idle(idle.Options(given.idle, given.active, given.waves, given.window, given.seed))
    await load.cuts(given.cuts)


def main() -> None:
    """Exits with 1 if something does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__)
    parser.add_argument("--idle", type=int, default=200, help="streams that wait")
    parser.add_argument("--active", type=int, default=50, help="turns of a wave")
    parser.add_argument("--waves", type=int, default=4, help="waves, one after the other")
    parser.add_argument("--window", type=float, default=10.0, help="seconds in which all streams wait")
    parser.add_argument("--cuts", type=int, default=100, help="clients that die and come back")
    parser.add_argument("--seed", type=int, default=1, help="chooses moments, places and API processes")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="turns-load-") as folder,
        servers.postgres() as postgres,
        servers.temporal() as address,
    ):
        load = Load(postgres, address, Path(folder), given.seed)
        asyncio.run(play(load, given))
        with psycopg.connect(postgres.uri) as conn:
            print(machine(conn.info.server_version))
    for line in load.broken[:50]:
        print(line)
    if load.broken:
        sys.exit(1)


if __name__ == "__main__":
    main()
