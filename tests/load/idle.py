"""Owns the playing of streams that wait: many of them on one API process, and turns that run next to them in waves."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.load.client import Reading
from tests.load.figures import Window, resident_mb, watched
from tests.load.served import Served, client_of

_AT_ONCE = 25  # streams that are opened at a time
_SPREAD_SECONDS = 1.0  # over which a wave's turns begin
_WAITING = "custom"  # what a run that waits has shown

BEFORE = "before: one wave has run"
WAITING = "all streams wait"
RELEASED = "all have ended"


@dataclass(frozen=True)
class Options:
    """How to play.

    Attributes:
        idle: streams that wait.
        active: turns of a wave.
        waves: one after the other.
        window: seconds in which nothing happens but waiting.
        seed: chooses when turns begin.
    """

    idle: int
    active: int
    waves: int
    window: float
    seed: int


@dataclass
class Played:
    """What was measured.

    Attributes:
        idle: the streams that waited.
        active: the turns that did not.
        window: the API process while all it had was waiting streams.
        heartbeats: that all of these brought in it.
        resident: the process's memory in MB, by when.
    """

    idle: list[Reading] = field(default_factory=list[Reading])
    active: list[Reading] = field(default_factory=list[Reading])
    window: Window = field(init=False)
    heartbeats: int = 0
    resident: dict[str, float] = field(default_factory=dict[str, float])

    def growth(self, first: str, last: str) -> float:
        """Returns how many MB the process has more at one moment than at another."""
        return self.resident[last] - self.resident[first]


Say = Callable[[str], None]


def after_wave(number: int) -> str:
    """Names a moment at which memory is measured."""
    return f"wave {number} has ended"


async def play(it: Served, options: Options, say: Say) -> Played:
    """Opens streams that wait, lets turns run next to them, then lets them go on to their end."""
    played = Played()
    chosen = random.Random(options.seed)
    gate = it.folder / f"gate-{uuid.uuid4().hex}"
    pid = it.apis[0].process.pid

    def note(when: str) -> None:
        played.resident[when] = resident_mb(pid)
        say(f"{when}: {played.resident[when]:.1f} MB")

    async with client_of(it.apis[0]) as http:
        await _wave(http, _readings("warm-up", options.active), chosen)
        note(BEFORE)
        played.idle = _readings("idle", options.idle, gate)
        async with asyncio.TaskGroup() as reading:
            try:
                for some in _portions(played.idle):
                    for one in some:
                        reading.create_task(_followed(http, one))
                    await _all(some, lambda one: any(event.name == _WAITING for event in one.events))
                note(WAITING)
                before = sum(one.heartbeats for one in played.idle)
                played.window = await watched(pid, it.database_url, options.window)
                played.heartbeats = sum(one.heartbeats for one in played.idle) - before
                for number in range(1, options.waves + 1):
                    wave = _readings(f"wave {number}", options.active)
                    played.active += wave
                    await _wave(http, wave, chosen)
                    note(after_wave(number))
            finally:
                gate.touch()
        note(RELEASED)
    return played


def _readings(what: str, count: int, gate: Path | None = None) -> list[Reading]:
    return [Reading(f"{what} {number}", str(gate or "")) for number in range(1, count + 1)]


def _portions(readings: Sequence[Reading]) -> Iterable[Sequence[Reading]]:
    return (readings[at : at + _AT_ONCE] for at in range(0, len(readings), _AT_ONCE))


async def _followed(http: httpx.AsyncClient, one: Reading) -> None:
    """Reads a run to its end: every other one is streamed as it is sent, the rest are joined."""
    if int(one.mark.rpartition(" ")[2]) % 2:
        await one.send(http)
    await one.read(http)


async def _wave(http: httpx.AsyncClient, wave: Sequence[Reading], chosen: random.Random) -> None:
    async def after(seconds: float, turn: Coroutine[None, None, None]) -> None:
        await asyncio.sleep(seconds)
        await turn

    async with asyncio.TaskGroup() as reading:
        for one in wave:
            reading.create_task(after(chosen.uniform(0, _SPREAD_SECONDS), _followed(http, one)))


async def _all(readings: Sequence[Reading], what: Callable[[Reading], bool]) -> None:
    async with asyncio.timeout(120):
        while not all(map(what, readings)):
            await asyncio.sleep(0.05)
