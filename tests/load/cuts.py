"""Owns the playing of clients that die: after any byte of a stream, to come back at any of the API processes."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx

from tests.load.client import Reading
from tests.load.served import Served, client_of

LANES = 5  # runs that are read at the same time; the clients of the first lane come when theirs has ended
CUTS_A_RUN = 10
# A run's stream has about 90,000 bytes, so that most clients of a run die while it goes on.
_MOST_BYTES = 10_000
_TRY_AGAIN_SECONDS = 0.05


@dataclass
class Cuts:
    """What happened.

    Attributes:
        made: clients that died, by the API process that they read from.
        inside: of them inside an event.
        ended: of them after their run had ended.
        broken: streams that the killed API process took with it, which are not among those that clients left.
        readings: what was read by clients that died, and by those that never did.
        different: runs for which the two are not the same.
    """

    made: Counter[int] = field(default_factory=Counter[int])
    inside: int = 0
    ended: int = 0
    broken: int = 0
    readings: list[Reading] = field(default_factory=list[Reading])
    different: list[str] = field(default_factory=list[str])


async def play(it: Served, *, seed: int, cuts: int) -> Cuts:
    """Reads runs, each with a client that dies and one that does not, until so many have died.

    The last API process is killed, and started again, when a quarter of them have.
    """
    found = Cuts()
    async with contextlib.AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
        https = [await stack.enter_async_context(client_of(api)) for api in it.apis]
        for number in range(LANES):
            share = cuts // LANES + (number < cuts % LANES)
            tasks.create_task(_lane(https, found, number, share, random.Random(f"{seed} {number}")))
        while found.made.total() < cuts // 4:
            await asyncio.sleep(0.01)
        await it.apis[-1].replace()
    return found


async def _lane(
    https: Sequence[httpx.AsyncClient], found: Cuts, number: int, cuts: int, chosen: random.Random
) -> None:
    runs = 0
    while cuts:
        runs += 1
        steady = Reading(f"run {number}.{runs}")
        dying = steady.another()
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(steady.read(https[0]))
            if number == 0:
                await asyncio.wait({watching})
            cuts -= await _read(https, found, dying, watching, min(cuts, CUTS_A_RUN), chosen)
        found.inside += dying.inside
        found.readings += (steady, dying)
        if dying.events != steady.events:
            found.different.append(f"{steady.mark}: {len(dying.events)} events of {len(steady.events)}")


async def _read(
    https: Sequence[httpx.AsyncClient],
    found: Cuts,
    dying: Reading,
    watching: asyncio.Task[bool],
    most_cuts: int,
    chosen: random.Random,
) -> int:
    """Reads a run to its end; returns how often its client died.

    The first one dies before it knows that its run was accepted: the next one sends it again, with the same key.
    """
    cuts = 0
    while True:
        api = chosen.randrange(len(https))
        most = chosen.randrange(_MOST_BYTES) if cuts else 0
        try:
            ended = await (dying.read(https[api], most) if cuts < most_cuts else dying.read(https[api]))
        except httpx.ConnectError:
            await asyncio.sleep(_TRY_AGAIN_SECONDS)  # it is being started again
            continue
        except httpx.TransportError:
            found.broken += 1
            continue
        if ended:
            return cuts
        cuts += 1
        found.made[api] += 1
        found.ended += watching.done()
