"""FR-4: the response was lost, the client asked again, and there were two runs. Here the same Idempotency-Key with the
same body is the same turn, for ever, on any API process; with another body it is a conflict (409).
"""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

from adapter import faultpoints
from tests.api.graphs import Held
from tests.api.serving import Serving, in_front_of, parse, serving
from tests.processes import faulty
from tests.proxy import proxy
from tests.servers import free_port

KEY = {"Idempotency-Key": "order 7"}


def _body(**more: Any) -> dict[str, Any]:
    return {"assistant_id": "graph", "input": {"trail": ["x"]}, **more}


async def _stream(api: Serving, thread: str) -> bytes:
    answered = await api.http.post(f"/threads/{thread}/runs/stream", json=_body(), headers=KEY)
    assert answered.status_code == 200
    return answered.content


@pytest.mark.parametrize("route", ["runs/stream", "runs/wait"])
async def test_a_lost_response(database_url: str, temporal: str, route: str) -> None:
    held = Held()
    async with serving(database_url, temporal, {"graph": held.graph()}) as api:
        thread = await api.thread()
        async with proxy(int(api.url.rpartition(":")[2])) as between, in_front_of(api.stack) as other:
            url = f"http://127.0.0.1:{between.port}/threads/{thread}/{route}"
            asking = asyncio.create_task(httpx.AsyncClient().post(url, json=_body(), headers=KEY, timeout=30))
            await held.started.wait()
            between.cut()
            with pytest.raises(httpx.TransportError):
                await asking
            again = asyncio.create_task(
                other.http.post(f"/threads/{thread}/{route}", json=_body(), headers=KEY)
            )
            held.go.set()
            answered = await again

        assert (answered.status_code, held.calls) == (200, 1)
        assert len((await api.http.get(f"/threads/{thread}/runs")).json()) == 1
        if route == "runs/stream":
            assert next(event.id for event in parse(answered.content)) == "1"


@pytest.mark.slow
async def test_an_api_process_that_dies_before_it_answers(
    database_url: str, temporal: str, tmp_path: Path
) -> None:
    async with faulty(database_url, temporal, tmp_path) as it:
        it.workers.start()
        ports = free_port(), free_port()
        first, second = (it.workers.start_api(port) for port in ports)
        await first.ready()
        await second.ready()
        it.faults.arm(faultpoints.AFTER_RECORD)
        thread = str(uuid.uuid4())
        body = {
            "assistant_id": "booking",
            "input": {"booking_id": "b-1", "amount": 80},
            "if_not_exists": "create",
        }
        async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
            asked = [f"http://127.0.0.1:{port}/threads/{thread}/runs/wait" for port in ports]
            with pytest.raises(httpx.TransportError):
                await http.post(asked[0], json=body, headers=KEY)
            await first.ended()
            answered = await http.post(asked[1], json=body, headers=KEY)
            runs = (await http.get(asked[1].removesuffix("/wait"))).json()

        assert answered.json()["charge"]["status"] == "succeeded"
        assert [run["status"] for run in runs] == ["success"]
        assert (it.count("attempts", "charge"), it.count("effects", "charge")) == (1, 1)


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
