"""A stream whose run is cancelled: it ends, and says nothing about it."""

from __future__ import annotations

import asyncio

import pytest

from tests.api.graphs import Held
from tests.api.serving import Serving
from tests.protocol.narrate import narrated

SEEN = ["metadata: attempt 1", "values: {trail=[x]}"]


@pytest.mark.parametrize("action", ["interrupt", "rollback"])
async def test_by_a_request(api: Serving, held: Held, action: str) -> None:
    thread = await api.thread()
    body = {"input": {"trail": ["x"]}, "stream_mode": ["values", "updates"]}
    streaming = asyncio.create_task(api.stream(thread, "held", **body))
    await held.started.wait()
    (run,) = (await api.http.get(f"/threads/{thread}/runs")).json()
    answered = await api.http.post(
        f"/threads/{thread}/runs/{run['run_id']}/cancel", params={"action": action, "wait": 1}
    )
    assert answered.json() == {}
    assert narrated(await streaming) == SEEN


@pytest.mark.parametrize(("strategy", "before"), [("interrupt", ["x"]), ("rollback", [])])
async def test_by_a_run_that_cuts_in(api: Serving, held: Held, strategy: str, before: list[str]) -> None:
    thread = await api.thread()
    body = {"input": {"trail": ["x"]}, "stream_mode": ["values", "updates"]}
    streaming = asyncio.create_task(api.stream(thread, "held", **body))
    await held.started.wait()
    second = {"input": {"trail": ["y"]}, "stream_mode": ["values"], "multitask_strategy": strategy}
    events = await api.stream(thread, "agent", **second)
    assert narrated(await streaming) == SEEN
    assert events[1].data["trail"] == [*before, "y"]
