"""The same key with the same body is the same turn for ever; with another body it is a conflict."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.api.graphs import Held
from tests.api.serving import Serving, parse, serving

KEY = {"Idempotency-Key": "order 7"}


def _body(**more: Any) -> dict[str, Any]:
    return {"assistant_id": "graph", "input": {"trail": ["x"]}, **more}


async def _stream(api: Serving, thread: str) -> bytes:
    answered = await api.http.post(f"/threads/{thread}/runs/stream", json=_body(), headers=KEY)
    assert answered.status_code == 200
    return answered.content


async def test_attaches_while_running_and_after(database_url: str, temporal: str) -> None:
    held = Held()
    async with serving(database_url, temporal, {"graph": held.graph()}) as api:
        thread = await api.thread()
        first = asyncio.create_task(_stream(api, thread))
        await held.started.wait()
        second = asyncio.create_task(_stream(api, thread))
        rejecting = await api.http.post(
            f"/threads/{thread}/runs", json=_body(multitask_strategy="reject"), headers=KEY
        )
        assert rejecting.status_code == 200
        held.go.set()
        events = [parse(await one) for one in (first, second)]
        assert events[0] == events[1] == parse(await _stream(api, thread))
        waited = await api.http.post(f"/threads/{thread}/runs/wait", json=_body(), headers=KEY)
        assert waited.json() == {"trail": ["x", "hold", "after"], "n": 1}
        assert held.calls == 1
        assert len((await api.http.get(f"/threads/{thread}/runs")).json()) == 1


async def test_another_body_conflicts(database_url: str, temporal: str) -> None:
    held = Held()
    held.go.set()
    async with serving(database_url, temporal, {"graph": held.graph()}) as api:
        thread = await api.thread()
        await _stream(api, thread)
        for other in (_body(input={"trail": ["y"]}), _body(metadata={"a": 1}), _body(command={"resume": 1})):
            answered = await api.http.post(f"/threads/{thread}/runs/stream", json=other, headers=KEY)
            assert answered.status_code == 409
            assert "Idempotency-Key" in answered.json()["detail"]


async def test_key_is_the_threads_own(database_url: str, temporal: str) -> None:
    held = Held()
    held.go.set()
    async with serving(database_url, temporal, {"graph": held.graph()}) as api:
        for _ in range(2):
            await _stream(api, await api.thread())
        assert held.calls == 2
