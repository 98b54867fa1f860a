"""What a turn costs by what it does: each on a new thread, one after the other."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from statistics import median
from typing import Final

from tests.bench.bench import Bench
from tests.bench.contenders.base import Contender, Setup
from tests.bench.measure import Measured

TURN: Final = "turn, ms"
HISTORY: Final = "history, bytes"
STEPS: Final = {"effects_1": 1, "effects_4": 4, "effects_16": 16, "inline_4": 4, "fan_out_20": 20}
_TURNS_PER_ROUND: Final = 5
# A target is about it, and contenders that are nearly alike; one round's turns differ by more than they do.
_MORE_ROUNDS: Final = {"effects_4": 5}
NOTES: Final = (
    "Time from asking for a turn on a new thread to its outcome, the median of 5 turns a round; effects_4 has five "
    "times as many rounds. Ours, plain and aegra over HTTP (`runs/wait`); the plugin's workflow is started and awaited "
    "by Temporal's client in the process that measures, without HTTP. Bare: as many activities that do nothing, "
    "without a graph or a database, their workflow awaited by Temporal's client: what Temporal alone takes.",
)


async def run(bench: Bench, *, cases: tuple[str, ...] = tuple(STEPS)) -> Measured:
    """Measures turns."""
    measured = Measured(NOTES)
    async with bench.contenders(measured, Setup(), direct=True, bare=True) as contenders:
        for case in cases:

            async def action(contender: Contender, case: str = case) -> Mapping[str, float]:
                return await _round(contender, case)

            able = [one for one in contenders if one.has(case)]
            rounds = bench.rounds * _MORE_ROUNDS.get(case, 1)
            await bench.interleave(measured, case, able, action, rounds=rounds)
    return measured


async def _round(contender: Contender, case: str) -> Mapping[str, float]:
    took: list[float] = []
    thread = ""
    for _ in range(_TURNS_PER_ROUND):
        thread = str(uuid.uuid4())
        began = time.perf_counter()
        await contender.turn(case, thread, "hello", STEPS[case])
        took.append(1000 * (time.perf_counter() - began))
    size = await contender.history_bytes(thread)
    return {TURN: median(took), **({} if size is None else {HISTORY: size})}
