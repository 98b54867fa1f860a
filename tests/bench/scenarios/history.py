"""What a turn costs by how long its conversation is already."""

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
HISTORY: Final = "history of the turn, bytes"
PER_EFFECT: Final = "history an effect, bytes"
LENGTHS: Final = (1, 50, 200, 600, 1500)
MESSAGE_BYTES: Final = 2000
_TURNS_PER_ROUND: Final = 2
NOTES: Final = (
    "A turn of 4 no-op effects with one more message, on a thread that has so many of 2 KB: the median of 2 turns "
    "after a first one that does not count, a new thread each round. The plugin's state is in its workflow, which "
    "makes the earlier messages itself, so that they are not in its history; its messages are dicts, and a turn is "
    "an update, which answers with the last message only. The others answer with the whole state. History: what the "
    "turn adds to it; of an effect: the difference of a turn of 16 and one of 4, by 12.",
)


def case_of(length: int) -> str:
    """Returns the case's name."""
    return f"{length:,} message{'s' * (length > 1)}"


async def run(bench: Bench) -> Measured:
    """Measures turns."""
    measured = Measured(NOTES)
    async with bench.contenders(measured, Setup()) as contenders:
        for length in LENGTHS:

            async def action(contender: Contender, length: int = length) -> Mapping[str, float]:
                return await _round(contender, length)

            await bench.interleave(measured, case_of(length), contenders, action)
    return measured


async def _round(contender: Contender, length: int) -> Mapping[str, float]:
    thread, content = str(uuid.uuid4()), "x" * MESSAGE_BYTES
    steps = await contender.have(thread, length, MESSAGE_BYTES)
    took: list[float] = []
    for _ in range(1 + _TURNS_PER_ROUND):
        steps += 4
        began = time.perf_counter()
        await contender.turn("effects_4", thread, content, steps)
        took.append(1000 * (time.perf_counter() - began))
    values = {TURN: median(took[1:])}
    if (before := await contender.history_bytes(thread)) is not None:
        small = await _adds(contender, "effects_4", thread, steps + 4, before)
        large = await _adds(contender, "effects_16", thread, steps + 20, before + small)
        values |= {HISTORY: small, PER_EFFECT: (large - small) / 12}
    return values


async def _adds(contender: Contender, graph: str, thread: str, steps: int, before: int) -> int:
    """Returns how many bytes of history a turn adds."""
    await contender.turn(graph, thread, "x" * MESSAGE_BYTES, steps)
    size = await contender.history_bytes(thread) or 0
    return size - before if contender.one_history else size
