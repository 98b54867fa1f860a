"""Whatever a client sends as `Last-Event-ID`: what follows an id that the run has, and nothing old for anything else.

`SEED` chooses other random values than the usual ones.
"""

from __future__ import annotations

import asyncio
import os
import random

import httpx
import pytest

from tests.api.graphs import Ticking, steps
from tests.api.serving import Event, Serving, first_events, parse, serving

GRAPHS = {"graph": steps("a", "b")}
EVERYTHING = ("-1", "0")
# No stream has sent these: nothing old is sent again.
GARBAGE = (
    "garbage", "-2", "-0", "+1", "1.0", "1e0", "0x1", "1_0", "1 2", "1,2", "1;1", "null", "NaN", "Infinity", "٣", "²",
    "\uff11", "日本", "\xb3", "\xff\xfe", "1795985015890-0", "1795985015890-1", "1-", "-", "--1", "%31", '"1"',
    "1\t2", "x" * 5000, "9" * 18, "9" * 19, "9" * 20, "9" * 40, "9" * 5000, str(2**31), str(2**63 - 1), str(2**63),
    str(2**64), "0" * 30, "00", "01", "0" * 18 + "1", "0" * 19 + "1", "0" * 5000 + "1",
)  # fmt: skip
NOTHING = (None, "")


def _values(seed: str, last: int) -> list[str | None]:
    chosen = random.Random(seed)
    signs = "0123456789-+.eE_ xX\u0663\u00b2\ud7ff\u00ff,;:\"'%/\\"
    # HTTP itself strips the space around a value.
    odd = ["".join(chosen.choices(signs, k=chosen.randint(1, 30))).strip() for _ in range(60)]
    numbers = [str(chosen.randint(-5, last + 5)) for _ in range(20)]
    return [*EVERYTHING, *GARBAGE, *NOTHING, *odd, *numbers, *(str(n) for n in range(last + 3))]


def _offset(value: str | None, last: int) -> int:
    """Returns after which event a stream is to begin, as documented; the last one for what is no event's id."""
    if value in EVERYTHING:
        return 0
    return int(value) if value in {str(n) for n in range(1, last + 1)} and value else last


def _headers(value: str | None) -> list[tuple[bytes, bytes]]:
    return [] if value is None else [(b"Last-Event-ID", value.encode("utf-8"))]


@pytest.mark.slow
async def test_of_a_run_that_ended(api: Serving) -> None:
    thread = await api.thread()
    whole = await api.stream(
        thread, input={"trail": ["x"]}, stream_mode=["values", "updates", "custom", "tasks"]
    )
    [run] = (await api.http.get(f"/threads/{thread}/runs")).json()
    url = f"/threads/{thread}/runs/{run['run_id']}/stream"
    for value in _values(os.environ.get("SEED", "1"), len(whole)):
        answered = await api.http.get(url, headers=_headers(value))
        assert answered.status_code == 200, value
        assert parse(answered.content) == whole[_offset(value, len(whole)) :], value


@pytest.mark.slow
async def test_of_a_run_that_goes_on(database_url: str, temporal: str) -> None:
    """Every stream has what follows its id, in order, once, and ends with the run."""
    ticking = Ticking()
    async with serving(database_url, temporal, {"graph": ticking.graph()}) as api:
        thread = await api.thread()
        run = await api.run(thread, input={"trail": []}, stream_mode=["custom", "values"])
        url = f"/threads/{thread}/runs/{run}/stream"
        for number in range(6):
            ticking.ticks.put_nowait(number)
        async with api.http.stream("GET", url, headers=_headers("-1")) as before:
            last = len(await first_events(before.aiter_raw(), 8))
        values = _values(os.environ.get("SEED", "1"), last)
        begun = asyncio.Semaphore(0)

        # More at once than a client has connections by itself.
        http = httpx.AsyncClient(base_url=api.url, timeout=30, limits=httpx.Limits(max_connections=None))

        async def join(value: str | None) -> list[Event]:
            async with http.stream("GET", url, headers=_headers(value)) as answered:
                assert answered.status_code == 200, value
                begun.release()  # the headers say that it knows from where it begins
                return parse(b"".join([chunk async for chunk in answered.aiter_raw()]))

        async with http:
            joined = [asyncio.create_task(join(value)) for value in values]
            async with asyncio.timeout(30):
                for _ in joined:
                    await begun.acquire()
            for tick in (6, 7, None):
                ticking.ticks.put_nowait(tick)
            streams = await asyncio.gather(*joined)
        whole = parse((await api.http.get(url, headers=_headers("-1"))).content)
        assert len(whole) > last
        for value, stream in zip(values, streams, strict=True):
            assert stream == whole[_offset(value, last) :], value


@pytest.mark.slow
async def test_of_another_run(api: Serving) -> None:
    """An id is a place in its own run: in a shorter one it is beyond the end, and nothing is sent again."""
    thread = await api.thread()
    long = await api.stream(
        thread, input={"trail": ["x"]}, stream_mode=["values", "updates", "tasks", "checkpoints"]
    )
    short = await api.stream(thread, input={"trail": ["y"]}, stream_mode=["values"])
    newest = (await api.http.get(f"/threads/{thread}/runs")).json()[0]["run_id"]
    url = f"/threads/{thread}/runs/{newest}/stream"
    assert len(long) > len(short)
    assert (await api.http.get(url, headers=_headers(long[-1].id))).content == b""
