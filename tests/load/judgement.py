"""Owns the judgement of what clients read: against PostgreSQL's own rows, and what the models were to say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import psycopg

from tests.api.serving import Event
from tests.load.client import Reading
from tests.load.idle import BEFORE, WAITING, Options, Played, after_wave
from tests.load.project.telling import TRAIL, checked, written
from tests.load.served import POOL_SIZE

# What is kept of a turn's 80,000 bytes by mistake would be several times this much after four waves of 50 turns.
FLAT_MB = 10.0
STREAM_MB = 0.1


@dataclass
class Judgement:
    """What was found.

    Attributes:
        complete: runs that were read to their end, and say what they were to say.
        events: that were read.
        missing: that are stored and were not read.
        doubled: that were read more than once.
        broken: what does not hold, one line each.
    """

    complete: int = 0
    events: int = 0
    missing: int = 0
    doubled: int = 0
    broken: list[str] = field(default_factory=list[str])


async def judge(database_url: str, readings: Sequence[Reading]) -> Judgement:
    """Compares what was read with what is there."""
    found = Judgement()
    stored = await _stored(database_url)
    for one in readings:
        status, last = stored.get(one.run or "", ("unknown", 0))
        ids = Counter(int(event.id or 0) for event in one.events)
        missing, doubled = set(range(1, last + 1)) - set(ids), ids.total() - len(ids)
        found.events += len(one.events)
        found.missing += len(missing)
        found.doubled += doubled
        if missing or doubled or list(ids) != sorted(ids) or max(ids, default=0) != last:
            found.broken.append(f"{one.mark}: {len(missing)} missing, {doubled} doubled or out of order")
        elif status != "success" or said(one.events) != (written(one.mark), checked(one.mark)):
            found.broken.append(f"{one.mark}: {status}, said {said(one.events)}")
        elif trail(one.events) != TRAIL:
            found.broken.append(f"{one.mark}: went {trail(one.events)}")
        else:
            found.complete += 1
    return found


def not_kept(played: Played, options: Options) -> list[str]:
    """Returns what does not hold of the API process, one line each."""
    found: list[str] = []
    window = played.window
    if window.held:
        found.append(f"{window.held} connections were held while all streams waited")
    if window.connections > POOL_SIZE + 1:
        found.append(
            f"{window.connections} connections: more than the pool's {POOL_SIZE} and the one that listens"
        )
    if (grown := played.growth(after_wave(1), after_wave(options.waves))) > FLAT_MB:
        found.append(f"memory grew by {grown:.1f} MB from the first wave to the last")
    if (grown := played.growth(BEFORE, WAITING)) > max(FLAT_MB, STREAM_MB * options.idle):
        found.append(f"memory grew by {grown:.1f} MB for {options.idle} streams that wait")
    return found


def said(events: Sequence[Event]) -> tuple[str, str]:
    """Returns what the two models said, put together from their tokens."""
    tokens = [(event.name, event.data[0]) for event in events if event.name.partition("|")[0] == "messages"]
    own, inner = (
        "".join(message["content"] for name, message in tokens if ("|" in name) is inside)
        for inside in (False, True)
    )
    return own, inner


def trail(events: Sequence[Event]) -> list[str]:
    """Returns the nodes that the last state tells of."""
    values = [event.data for event in events if event.name == "values"]
    return values[-1]["trail"] if values else []


async def _stored(database_url: str) -> dict[str, tuple[str, int]]:
    async with await psycopg.AsyncConnection.connect(database_url) as conn:
        rows = await conn.execute("SELECT turn_id::text, status, last_offset FROM turns.turn")
        return {turn: (status, last) async for turn, status, last in rows}
