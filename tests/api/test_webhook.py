"""`webhook`: whoever is named there is told how the run ended, until they say that they heard it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from adapter import webhook
from tests.api.graphs import Held, asking, failing, steps
from tests.api.receiver import Call, Receiver, receiving
from tests.api.serving import Serving, in_front_of

pytestmark = pytest.mark.slow

HELD = Held()
GRAPHS = {"graph": steps("plan"), "asking": asking(), "failing": failing(), "held": HELD.graph()}
SETTINGS = {"webhook_private": True}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as it:
        yield it


async def _call(receiver: Receiver) -> Call:
    return await asyncio.to_thread(receiver.calls.get, timeout=20)


async def _workflows(api: Serving, run: str) -> list[Any]:
    """Waits until the run's webhook is settled; returns what became of it."""
    found: list[Any] = []
    while not found:
        query = f"WorkflowType = 'Webhook' AND WorkflowId STARTS_WITH 'webhook/{run}/'"
        async for execution in api.stack.client.list_workflows(query):
            found.append(await api.stack.client.get_workflow_handle(execution.id).result())
        await asyncio.sleep(0.05)
    return found


async def test_a_run_that_ended_well(api: Serving, receiver: Receiver) -> None:
    thread = await api.thread()
    run = await api.run(thread, input={"trail": ["x"]}, webhook=receiver.url)
    call = await _call(receiver)
    told: Any = await api.sdk.runs.get(thread, run)
    added = ("values", "run_started_at", "run_ended_at", "webhook_sent_at")
    assert {key: value for key, value in call.body.items() if key not in added} == told
    assert (told["status"], told["kwargs"]["webhook"]) == ("success", receiver.url)
    assert call.body["values"] == {"trail": ["x", "plan"]}
    moments = [datetime.fromisoformat(call.body[name]) for name in added[1:]]
    assert moments == sorted(moments)
    assert call.path == "/ended?who=me"
    assert call.headers["content-type"] == "application/json"
    assert call.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert call.headers["idempotency-key"].startswith(f"{run}:")
    assert await _workflows(api, run) == ["answered with 200"]
    assert receiver.calls.empty()


async def test_a_question(api: Serving, receiver: Receiver) -> None:
    await api.run(await api.thread(), "asking", input={"trail": ["x"]}, webhook=receiver.url)
    call = await _call(receiver)
    assert call.body["status"] == "success"
    assert [asked["value"] for asked in call.body["values"]["__interrupt__"]] == [{"question": "Proceed?"}]


async def test_a_run_that_failed(api: Serving, receiver: Receiver) -> None:
    await api.run(await api.thread(), "failing", input={"trail": ["x"]}, webhook=receiver.url)
    call = await _call(receiver)
    assert call.body["status"] == "error"
    assert call.body["error"] == {"error": "ValueError", "message": "boom in plan"}


async def test_a_run_that_was_cancelled(api: Serving, held: Held, receiver: Receiver) -> None:
    thread = await api.thread()
    run = await api.run(thread, "held", input={"trail": ["x"]}, webhook=receiver.url)
    await held.started.wait()
    await api.sdk.runs.cancel(thread, run)
    call = await _call(receiver)
    assert (call.body["status"], call.body["values"]) == ("interrupted", {"trail": ["x"]})


async def test_a_run_that_was_taken_back_is_not_told_of(api: Serving, held: Held, receiver: Receiver) -> None:
    thread = await api.thread()
    run = await api.run(thread, "held", input={"trail": ["x"]}, webhook=receiver.url)
    await held.started.wait()
    await api.sdk.runs.cancel(thread, run, action="rollback", wait=True)
    after = await api.run(thread, input={"trail": ["y"]}, webhook=receiver.url)
    assert (await _call(receiver)).body["run_id"] == after
    assert receiver.calls.empty()


async def test_a_run_that_never_began_is_not_told_of(api: Serving, receiver: Receiver) -> None:
    thread = await api.thread()
    never = await api.run(thread, input={"trail": ["x"]}, after_seconds=3600, webhook=receiver.url)
    await api.sdk.runs.cancel(thread, never)
    after = await api.run(thread, input={"trail": ["y"]}, webhook=receiver.url)
    assert (await _call(receiver)).body["run_id"] == after
    assert receiver.calls.empty()


async def test_a_stateless_run(api: Serving, receiver: Receiver) -> None:
    body = {"assistant_id": "graph", "input": {"trail": ["x"]}, "webhook": receiver.url}
    answered = await api.http.post("/runs/wait", json=body)
    assert answered.json()["trail"] == ["x", "plan"]
    assert (await _call(receiver)).body["values"] == {"trail": ["x", "plan"]}


async def test_called_again_until_it_hears(api: Serving, receiver: Receiver) -> None:
    receiver.answers.extend([503, 429])
    run = await api.run(await api.thread(), input={"trail": ["x"]}, webhook=receiver.url)
    calls = [await _call(receiver) for _ in range(3)]
    assert await _workflows(api, run) == ["answered with 200"]
    assert len({call.headers["idempotency-key"] for call in calls}) == 1
    assert receiver.calls.empty()


@pytest.mark.parametrize("answer", [302, 307, 400, 410])
async def test_a_refusal_is_final(api: Serving, receiver: Receiver, answer: int) -> None:
    """A redirect is one, too: it may lead anywhere."""
    receiver.answers.append(answer)
    run = await api.run(await api.thread(), input={"trail": ["x"]}, webhook=receiver.url)
    assert (await _call(receiver)).path == "/ended?who=me"
    assert await _workflows(api, run) == ["given up"]
    assert receiver.calls.empty()


async def test_nobody_waits_for_it(api: Serving, receiver: Receiver) -> None:
    """Neither the run's client nor the next turn of the thread."""
    receiver.go.clear()
    thread = await api.thread()
    assert (await api.wait(thread, input={"trail": ["x"]}, webhook=receiver.url))["trail"] == ["x", "plan"]
    await _call(receiver)
    assert (await api.wait(thread, input={"trail": ["y"]}))["trail"] == ["x", "plan", "y", "plan"]


async def test_values_are_those_of_the_run(api: Serving, receiver: Receiver) -> None:
    """Also when it is called late."""
    receiver.answers.append(500)
    thread = await api.thread()
    await api.run(thread, input={"trail": ["x"]}, webhook=receiver.url)
    await _call(receiver)
    await api.wait(thread, input={"trail": ["y"]})
    assert (await _call(receiver)).body["values"] == {"trail": ["x", "plan"]}


PRIVATE = [
    "http://localhost/x",
    "http://LOCALHOST./x",
    "http://a.localhost/x",
    "http://127.0.0.1/x",
    "http://127.1/x",
    "http://2130706433/x",
    "http://0x7f000001/x",
    "http://0.0.0.0/x",
    "http://10.1.2.3/x",
    "http://192.168.0.1:8080/x",
    "http://169.254.169.254/latest/meta-data",
    "http://[::1]/x",
    "http://[::ffff:127.0.0.1]/x",
    "http://[fd00::1]/x",
    "http://224.0.0.1/x",
    "http://db.internal/x",
]
BAD = [
    "here",
    "/path",
    "ftp://example.org/x",
    "http://",
    "http://a:b@example.org/x",
    "http://[::1",
    "http://x\ny/",
]


@pytest.mark.parametrize("url", [*PRIVATE, *BAD])
async def test_refused_urls(api: Serving, url: str) -> None:
    thread = await api.thread()
    async with in_front_of(api.stack, webhook_private=False) as careful:
        body: Any = {"assistant_id": "graph", "input": {}, "webhook": url}
        answered = await careful.http.post(f"/threads/{thread}/runs", json=body)
    assert answered.status_code == 422 and answered.json()["detail"].startswith("webhook: ")
    assert (await api.http.get(f"/threads/{thread}/runs")).json() == []


@pytest.mark.parametrize("url", BAD)
async def test_refused_wherever_private_ones_are_allowed(api: Serving, url: str) -> None:
    body: Any = {"assistant_id": "graph", "input": {}, "webhook": url}
    assert (await api.http.post("/runs", json=body)).status_code == 422


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.7", "::1", "fe80::1%2"])
async def test_a_name_that_leads_inside(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """The name is looked up when it is called; only its addresses say where it leads."""

    def found(host: str, port: int, *_: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    with pytest.raises(webhook.Refused):
        await webhook.post(f"http://hooks.example.org:{receiver.port}/x", b"{}", headers={}, private=False)
    assert receiver.calls.empty()


async def test_a_name_is_looked_up_once(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def found(host: str, port: int, *_: Any) -> Any:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    url = f"http://hooks.example.org:{receiver.port}/x"
    assert await webhook.post(url, b"{}", headers={}, private=True) == 200
    assert receiver.calls.get().headers["host"] == f"hooks.example.org:{receiver.port}"
    assert asked.count("hooks.example.org") == 1
