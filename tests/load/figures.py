"""Owns the measuring of an API process: its memory, its processor time, its connections to PostgreSQL."""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import dataclass

import psutil
import psycopg

# Of the process's pool, and the one that listens.
_NAMES = "turns-api%"
_LOOK_SECONDS = 0.1
# Statements take milliseconds; whoever keeps a connection while it waits keeps it for as long as that.
_HELD_SECONDS = 1.0
_MB = 1024 * 1024


@dataclass(frozen=True)
class Window:
    """What an API process did in some seconds.

    Attributes:
        seconds: how many.
        cpu_seconds: of processor time.
        connections: to PostgreSQL, at most.
        busy: of them in a statement or a transaction, at most at a time.
        busy_mean: the same, on average.
        held: of them in the same one for more than a second, at most at a time.
    """

    seconds: float
    cpu_seconds: float
    connections: int
    busy: int
    busy_mean: float
    held: int

    @property
    def cpu_percent(self) -> float:
        """Of one processor."""
        return 100 * self.cpu_seconds / self.seconds


def resident_mb(pid: int) -> float:
    """Returns a process's resident memory."""
    return psutil.Process(pid).memory_info().rss / _MB


async def watched(pid: int, database_url: str, seconds: float) -> Window:
    """Looks at a process for some seconds. It must be the only API on its database."""
    process = psutil.Process(pid)
    looks: list[tuple[int, int, int]] = []
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as conn:
        before, began = process.cpu_times(), time.monotonic()
        while time.monotonic() < began + seconds:
            looks.append(await _look(conn))
            await asyncio.sleep(_LOOK_SECONDS)
        took, after = time.monotonic() - began, process.cpu_times()
    connections, busy, held = zip(*looks, strict=True)
    return Window(
        seconds=took,
        cpu_seconds=max(0.0, after.user + after.system - before.user - before.system),
        connections=max(connections),
        busy=max(busy),
        busy_mean=statistics.mean(busy),
        held=max(held),
    )


async def _look(conn: psycopg.AsyncConnection[tuple[int, int, int]]) -> tuple[int, int, int]:
    found = await conn.execute(
        "SELECT count(*), count(*) FILTER (WHERE state <> 'idle'), count(*) FILTER (WHERE state <> 'idle'"
        " AND clock_timestamp() - coalesce(xact_start, query_start) > make_interval(secs => %s))"
        " FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE %s",
        [_HELD_SECONDS, _NAMES],
    )
    row = await found.fetchone()
    assert row is not None
    return row
