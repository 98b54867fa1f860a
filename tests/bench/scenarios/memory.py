"""What processes take: memory at the start and as turns go by, and CPU when there is nothing to do."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from typing import Final

from tests.bench.bench import Bench
from tests.bench.contenders.base import Contender, Setup
from tests.bench.measure import Measured
from tests.bench.usage import cpu_seconds, resident_mb

IDLE: Final = "idle"
TURNS: Final = 2000
IDLE_SECONDS: Final = 30.0
_CONCURRENT: Final = 20
_PARTS: Final = 4
NOTES: Final = (
    "Resident memory after the start and after so many turns of 1 no-op effect, 20 at a time. CPU of 30 s without "
    "any turn, as a percentage of one core, for all contenders at the same time.",
)


def resident(role: str) -> str:
    """Returns the metric's name."""
    return f"{role}, MB"


def cpu(role: str) -> str:
    """Returns the metric's name."""
    return f"{role}, CPU %"


def after(turns: int) -> str:
    """Returns the case's name."""
    return f"after {turns:,} turns"


async def run(bench: Bench) -> Measured:
    """Measures memory and idle CPU."""
    measured = Measured(NOTES)
    async with bench.contenders(measured, Setup()) as contenders:
        for contender in contenders:
            measured.add(IDLE, contender.name, 0, _resident(contender))
        part = TURNS // _PARTS
        left = contenders
        for number in range(1, _PARTS + 1):
            case = after(number * part)

            async def action(contender: Contender) -> Mapping[str, float]:
                await _turns(contender, part)
                return _resident(contender)

            await bench.interleave(measured, case, left, action, rounds=1, patience=600)
            left = [one for one in left if (case, one.name) not in measured.failures]
        await _idle(measured, contenders)
    return measured


async def _idle(measured: Measured, contenders: list[Contender]) -> None:
    await asyncio.sleep(2)  # what ends turns ends with them
    before = {(one.name, role): cpu_seconds(one.pids(role)) for one in contenders for role in one.started}
    await asyncio.sleep(IDLE_SECONDS)
    for one in contenders:
        for role in one.started:
            used = cpu_seconds(one.pids(role)) - before[one.name, role]
            measured.add(IDLE, one.name, 0, {cpu(role): 100 * used / IDLE_SECONDS})


async def _turns(contender: Contender, count: int) -> None:
    left = iter(range(count))

    async def client() -> None:
        for _ in left:
            await contender.turn("effects_1", str(uuid.uuid4()), "hello", 1)

    async with asyncio.TaskGroup() as clients:
        for _ in range(_CONCURRENT):
            clients.create_task(client())


def _resident(contender: Contender) -> dict[str, float]:
    return {resident(role): resident_mb(contender.pids(role)) for role in contender.started}
