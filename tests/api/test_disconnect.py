"""What a client's leaving does to its turn: nothing, unless the request said so."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from tests.api.graphs import Held
from tests.api.serving import Serving, serving

HELD = Held()
GRAPHS = {"graph": HELD.graph()}


async def _leave_stream(api: Serving, held: Held, thread: str, on_disconnect: str | None) -> str:
    body: dict[str, Any] = {"assistant_id": "graph", "input": {"trail": []}, "on_disconnect": on_disconnect}
    async with api.http.stream("POST", f"/threads/{thread}/runs/stream", json=body) as answered:
        await held.started.wait()
        return answered.headers["content-location"].rpartition("/")[2]


@pytest.mark.parametrize("said", ["continue", None])
async def test_turn_goes_on(api: Serving, held: Held, said: str | None) -> None:
    run = await _leave_stream(api, held, await api.thread(), said)
    await asyncio.sleep(0.3)
    held.go.set()
    assert (await api.stack.ended(run))["status"] == "success"


@pytest.mark.parametrize(("said", "setting"), [("cancel", "continue"), (None, "cancel")])
async def test_turn_is_cancelled(database_url: str, temporal: str, said: str | None, setting: str) -> None:
    held = Held()
    async with serving(database_url, temporal, {"graph": held.graph()}, on_disconnect=setting) as api:
        run = await _leave_stream(api, held, await api.thread(), said)
        assert (await api.stack.ended(run, seconds=5))["status"] == "interrupted"
        assert held.stopped.is_set()


async def test_leaving_a_wait_cancels(api: Serving, held: Held) -> None:
    thread = await api.thread()
    waiting = asyncio.create_task(api.wait(thread, input={"trail": []}, on_disconnect="cancel"))
    await held.started.wait()
    run = (await api.http.get(f"/threads/{thread}/runs")).json()[0]["run_id"]
    waiting.cancel()
    assert (await api.stack.ended(run, seconds=5))["status"] == "interrupted"


@pytest.mark.parametrize("how", ["stream", "join"])
async def test_leaving_a_join_cancels_when_asked(api: Serving, held: Held, how: str) -> None:
    thread = await api.thread()
    run = await api.run(thread, input={"trail": []})
    await held.started.wait()
    url = f"/threads/{thread}/runs/{run}/{how}"
    async with httpx.AsyncClient(base_url=api.url) as client:
        async with client.stream("GET", url):
            pass
        await asyncio.sleep(0.2)
        assert await api.status(thread, run) == "running"
        async with client.stream("GET", url, params={"cancel_on_disconnect": "1"}):
            pass
    assert (await api.stack.ended(run, seconds=5))["status"] == "interrupted"
