"""How long a token takes to its client: a scripted model says 50 a second, each the time at which it is said."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping
from statistics import median
from typing import Final

from tests.bench.bench import Bench
from tests.bench.contenders.base import Contender, Setup
from tests.bench.measure import Measured, percentile
from tests.bench.usage import cpu_seconds
from tests.bench.wire import Refused

ONE: Final = "1 stream"
MANY: Final = "100 streams"
FIRST: Final = "request to first token, ms"
P50: Final = "token to client, p50, ms"
P99: Final = "token to client, p99, ms"
RATE: Final = "tokens/s that arrive"
PER_CPU: Final = "tokens a CPU second of the API"
CLIENT: Final = "CPU of the client, % of a core"
_STREAMS: Final = 100
_ONE_AFTER_THE_OTHER: Final = 5
_MOST_ROUNDS: Final = 2
NOTES: Final = (
    "50 tokens a second, each the time at which it was said, on the same clock. 1 stream: 5 turns of 10 tokens a "
    "round, one after the other. 100 streams: turns of 750 tokens that are asked for within one second; of their "
    "tokens those count that are said while all 100 run. The client is one process on the same machine. The plugin "
    "streams what nodes write themselves, in batches of 100 ms (its default), to Temporal's client. The API of plain "
    "and aegra also runs the graph.",
)


async def run(bench: Bench) -> Measured:
    """Measures streams."""
    measured = Measured(NOTES)
    async with bench.contenders(measured, Setup(write=True), warm_up=None) as contenders:
        for contender in contenders:
            await _stream(contender, "chat_10")
        await bench.interleave(measured, ONE, contenders, _one)
        rounds = min(bench.rounds, _MOST_ROUNDS)
        await bench.interleave(measured, MANY, contenders, _many, rounds=rounds)
    return measured


async def _one(contender: Contender) -> Mapping[str, float]:
    firsts: list[float] = []
    late: list[float] = []
    for _ in range(_ONE_AFTER_THE_OTHER):
        first, delays = await _stream(contender, "chat_10")
        firsts.append(first)
        late += delays
    return {FIRST: median(firsts), P50: percentile(late, 0.5), P99: percentile(late, 0.99)}


async def _many(contender: Contender) -> Mapping[str, float]:
    async def begin(number: int) -> tuple[float, list[tuple[float, float]]]:
        await asyncio.sleep(number / _STREAMS)
        began = time.monotonic()
        got = await _tokens(contender, "chat_750")
        return 1000 * (got[0][1] - began), got

    used, own, began = cpu_seconds(contender.pids("api")), time.process_time(), time.monotonic()
    streams = await asyncio.gather(*(begin(number) for number in range(_STREAMS)))
    took, own = time.monotonic() - began, time.process_time() - own
    used = cpu_seconds(contender.pids("api")) - used
    all_run = max(got[0][0] for _, got in streams), min(got[-1][0] for _, got in streams)
    late = [
        1000 * (here - said) for _, got in streams for said, here in got if all_run[0] < said < all_run[1]
    ]
    arrived = sum(all_run[0] < here < all_run[1] for _, got in streams for _, here in got)
    if not late:
        raise Refused("not all of 100 streams ran at the same time")
    values = {
        FIRST: median(first for first, _ in streams),
        P50: percentile(late, 0.5),
        P99: percentile(late, 0.99),
        RATE: arrived / (all_run[1] - all_run[0]),
        CLIENT: 100 * own / took,
    }
    return {**values, **({PER_CPU: sum(len(got) for _, got in streams) / used} if used else {})}


async def _stream(contender: Contender, graph: str) -> tuple[float, list[float]]:
    """Runs a turn; returns the milliseconds to its first token, and those that each token took."""
    began = time.monotonic()
    got = await _tokens(contender, graph)
    return 1000 * (got[0][1] - began), [1000 * (here - said) for said, here in got]


async def _tokens(contender: Contender, graph: str) -> list[tuple[float, float]]:
    """Runs a turn; returns when each of its tokens was said and when it was here."""
    count = int(graph.rpartition("_")[2])
    got = await contender.tokens(graph, str(uuid.uuid4()))
    if len(got) != count:
        raise Refused(f"{len(got)} of {count} tokens came")
    return got
