"""How many turns a second, and what each costs in CPU: so many clients that each ask for one turn after the other."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping
from typing import Final

from tests.bench.bench import Bench
from tests.bench.contenders.base import Contender, Setup
from tests.bench.measure import Measured
from tests.bench.usage import cpu_seconds

RATE: Final = "turns/s"
CPU: Final = "CPU a turn, ms"
CPU_OF_ALL: Final = "CPU a turn with PostgreSQL and Temporal, ms"
WORKERS: Final = (1, 2)
CONCURRENT: Final = (1, 20, 100)
SECONDS: Final = 3.0
_MOST_ROUNDS: Final = 2
NOTES: Final = (
    "Turns of 4 no-op effects, each on a new thread, asked for during 3 s a round and awaited; 2 rounds at most. CPU: "
    "of all processes of the contender (workers and API), user and system; then with PostgreSQL's and Temporal's. The "
    "plugin's client runs in the process that measures and is not counted, nor is that of bare, whose activities do "
    "nothing: what Temporal alone costs. Workers: of ours, the plugin's and bare's worker "
    "processes (ours with one API process); of plain and aegra web processes.",
)


def case_of(workers: int, concurrent: int) -> str:
    """Returns the case's name."""
    return f"{workers} worker{'s' * (workers > 1)}, {concurrent} concurrent"


async def run(bench: Bench) -> Measured:
    """Measures throughput."""
    measured = Measured(NOTES)
    rounds = min(bench.rounds, _MOST_ROUNDS)
    for workers in WORKERS:
        async with bench.contenders(measured, Setup(workers), bare=True) as contenders:
            for concurrent in CONCURRENT:

                async def action(contender: Contender, concurrent: int = concurrent) -> Mapping[str, float]:
                    return await _round(bench, contender, concurrent)

                case = case_of(workers, concurrent)
                await bench.interleave(measured, case, contenders, action, rounds=rounds)
    return measured


async def _round(bench: Bench, contender: Contender, concurrent: int) -> Mapping[str, float]:
    began, done = time.monotonic(), 0
    before = _used(bench, contender)

    async def client() -> None:
        nonlocal done
        while time.monotonic() < began + SECONDS:
            await contender.turn("effects_4", str(uuid.uuid4()), "hello", 4)
            done += 1

    async with asyncio.TaskGroup() as clients:
        for _ in range(concurrent):
            clients.create_task(client())
    took = time.monotonic() - began
    own, of_servers = (
        after - earlier for after, earlier in zip(_used(bench, contender), before, strict=True)
    )
    return {RATE: done / took, CPU: 1000 * own / done, CPU_OF_ALL: 1000 * (own + of_servers) / done}


def _used(bench: Bench, contender: Contender) -> tuple[float, float]:
    return cpu_seconds(contender.pids()), cpu_seconds(bench.servers.pids)
