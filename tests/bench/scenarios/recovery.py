"""How long a turn stands still when its worker is killed in the middle of a node."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.bench.bench import Bench
from tests.bench.contenders.base import Contender, Setup
from tests.bench.measure import Measured
from tests.bench.wire import Refused

SECONDS: Final = "kill to next attempt, s"
TIMES: Final = "the same, x the timeout"
LOST_AFTER: Final = 5.0
_MOST_ROUNDS: Final = 3
NOTES: Final = (
    "Two workers; the one that runs a node of 3 s gets a SIGKILL after 0.5 s and is replaced at once. The timeout is "
    "5 s for ours and the plugin: ours of heartbeats, which nodes need not know of, so that a node may take as long "
    "as it likes (30 s unless set otherwise); the plugin's start-to-close, since it sends no heartbeats, so that it "
    "must exceed what the longest node takes.",
)


async def run(bench: Bench) -> Measured:
    """Measures recoveries."""
    measured = Measured(NOTES)
    setup = Setup(workers=2, lost_after=LOST_AFTER)
    async with bench.contenders(measured, setup) as contenders:
        rounds = min(bench.rounds, _MOST_ROUNDS)
        await bench.interleave(measured, "killed in a node", contenders, _round, rounds=rounds)
    return measured


async def _round(contender: Contender) -> Mapping[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        marks = Path(folder) / "marks"
        turn = asyncio.create_task(contender.turn("slow", str(uuid.uuid4()), str(marks), 1))
        try:
            pid, _ = await _mark(marks, 0, 30)
            await asyncio.sleep(0.5)
            killed = time.monotonic()
            os.kill(int(pid), signal.SIGKILL)
            contender.replace()
            _, again = await _mark(marks, 1, 3 * LOST_AFTER)
            await turn
        except TimeoutError:
            raise Refused(f"the turn did not go on within {3 * LOST_AFTER:.0f} s: it was lost") from None
        finally:
            turn.cancel()
            await asyncio.gather(turn, return_exceptions=True)
    return {SECONDS: float(again) - killed, TIMES: (float(again) - killed) / LOST_AFTER}


async def _mark(marks: Path, number: int, seconds: float) -> tuple[str, str]:
    """Waits until the node has begun once more; returns the process and the time."""
    async with asyncio.timeout(seconds):
        while True:
            lines = marks.read_text().splitlines() if marks.exists() else []
            if len(lines) > number:
                pid, at = lines[number].split()
                return pid, at
            await asyncio.sleep(0.005)
