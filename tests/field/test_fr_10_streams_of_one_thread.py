"""FR-10: two streams on one thread mixed their outputs. Here each has the events of its own run only."""

from __future__ import annotations

import asyncio
import re

import pytest

from tests.api.serving import Serving, fresh, parse, serving
from tests.protocol.graphs import agent, parent

MODES = ["values", "updates", "messages-tuple", "custom", "tasks", "checkpoints", "debug"]
RUN = re.compile(rb'"run_id":"([^"]+)"')


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["enqueue", "interrupt"])
async def test_five_at_once(database_url: str, temporal: str, strategy: str) -> None:
    async with serving(database_url, temporal, {"agent": agent(), "parent": parent()}) as api:
        thread = await api.thread()
        streams = await asyncio.gather(*(_stream(api, thread, n, strategy) for n in range(5)))
        assert len({run for run, _ in streams}) == 5
        for run, raw in streams:
            events = parse(raw)
            assert set(RUN.findall(raw)) <= {run.encode()}
            assert [e.name for e in events].count("metadata") <= 1
            late = await api.http.get(f"/threads/{thread}/runs/{run}/stream", headers={"Last-Event-ID": "-1"})
            assert parse(late.content) == events
        ended = [await api.status(thread, run) for run, _ in streams]
        assert ended.count("success") == (5 if strategy == "enqueue" else ended.count("success"))
        # The newest always gets to its end, and tells of all that it did.
        newest = (await api.http.get(f"/threads/{thread}/runs?limit=1")).json()[0]["run_id"]
        raw = dict(streams)[newest]
        assert [e.name for e in parse(raw)].count("metadata") == 1 and RUN.findall(raw)


async def _stream(api: Serving, thread: str, number: int, strategy: str) -> tuple[str, bytes]:
    body = {
        "assistant_id": ("agent", "parent")[number % 2],
        "input": {"messages": [{"role": "user", "content": f"message {number}", "id": fresh()}]},
        "stream_mode": MODES,
        "stream_subgraphs": True,
        "multitask_strategy": strategy,
    }
    answered = await api.http.post(f"/threads/{thread}/runs/stream", json=body)
    return answered.headers["location"].split("/")[4], answered.content
