"""The payment provider that the examples charge: a real process, spoken to over HTTP, killed with SIGKILL."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from deploy.examples.booking.provider_process import ProviderDidNotStart, ProviderProcess, start

# Every one of them starts processes.
pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "deploy" / "examples"
CHARGE = {"booking_id": "b-1", "amount": 80}


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProviderProcess]:
    started = start(tmp_path_factory.mktemp("provider") / "ledger.jsonl")
    yield started
    kill(started)


@pytest.fixture
async def http(provider: ProviderProcess) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=provider.url, trust_env=False) as client:
        yield client


@pytest.fixture
def key() -> str:
    return uuid4().hex


def kill(provider: ProviderProcess) -> None:
    provider.process.kill()
    provider.process.wait()


def headers(key: str) -> dict[str, str]:
    return {"Idempotency-Key": key}


async def records(http: httpx.AsyncClient, kind: str, key: str | None) -> list[dict[str, Any]]:
    ledger = (await http.get("/ledger")).json()
    return [record for record in ledger[kind] if record["key"] == key]


async def until_recorded(http: httpx.AsyncClient, kind: str, key: str) -> None:
    while not await records(http, kind, key):
        await asyncio.sleep(0.01)


async def test_the_same_request_again_gets_the_recorded_answer(http: httpx.AsyncClient, key: str):
    first = await http.post("/charges", json=CHARGE, headers=headers(key))
    again = await http.post("/charges", json=CHARGE, headers=headers(key))

    assert first.status_code == again.status_code == 200
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.content == first.content
    assert [effect["effect_id"] for effect in await records(http, "effects", key)] == [first.json()["id"]]
    assert [a["outcome"] for a in await records(http, "attempts", key)] == ["accepted", "replayed"]


async def test_a_request_without_a_key_acts_every_time(http: httpx.AsyncClient):
    before = len(await records(http, "effects", None))
    receipts = [(await http.post("/charges", json=CHARGE)).json()["id"] for _ in range(2)]

    assert len(set(receipts)) == 2
    assert len(await records(http, "effects", None)) == before + 2


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/charges", {"booking_id": "b-1", "amount": 81}),
        ("/charges", {"booking_id": "b-2", "amount": 80}),
        ("/refunds", {"order_id": "b-1", "amount": 80}),
    ],
)
async def test_a_key_stands_for_one_request_only(
    http: httpx.AsyncClient, key: str, path: str, body: dict[str, Any]
):
    await http.post("/charges", json=CHARGE, headers=headers(key))
    other = await http.post(path, json=body, headers=headers(key))

    assert other.status_code == 400
    assert other.json()["error"]["code"] == "idempotency_key_reused"
    assert len(await records(http, "effects", key)) == 1


@pytest.mark.parametrize("delay", ["delay_before", "delay_after"])
async def test_a_key_in_flight_is_refused_until_it_has_an_answer(
    http: httpx.AsyncClient, key: str, delay: str
):
    slow = asyncio.create_task(http.post("/charges", json={**CHARGE, delay: 0.3}, headers=headers(key)))
    await until_recorded(http, "attempts", key)
    meanwhile = await http.post("/charges", json=CHARGE, headers=headers(key))
    first = await slow
    afterwards = await http.post("/charges", json=CHARGE, headers=headers(key))

    assert meanwhile.status_code == 409
    assert meanwhile.json()["error"]["code"] == "idempotency_key_in_use"
    assert afterwards.json() == first.json()
    assert len(await records(http, "effects", key)) == 1


async def test_of_many_requests_at_once_one_acts(http: httpx.AsyncClient, key: str):
    body = {**CHARGE, "delay_before": 0.1}
    answers = await asyncio.gather(
        *(http.post("/charges", json=body, headers=headers(key)) for _ in range(30))
    )

    statuses = sorted(answer.status_code for answer in answers)
    acted = [a for a in answers if a.status_code == 200 and "Idempotent-Replayed" not in a.headers]
    assert set(statuses) <= {200, 409}
    assert len(acted) == 1
    assert len(await records(http, "effects", key)) == 1
    assert len(await records(http, "attempts", key)) == 30


async def test_a_client_that_leaves_does_not_stop_the_charge(
    http: httpx.AsyncClient, provider: ProviderProcess, key: str
):
    async with httpx.AsyncClient(base_url=provider.url, trust_env=False) as leaving:
        body = {**CHARGE, "delay_before": 0.3}
        request = asyncio.create_task(leaving.post("/charges", json=body, headers=headers(key)))
        await until_recorded(http, "attempts", key)
        request.cancel()
        await asyncio.wait([request])
    assert await records(http, "effects", key) == []

    await until_recorded(http, "effects", key)
    again = await http.post("/charges", json=CHARGE, headers=headers(key))
    assert again.headers["Idempotent-Replayed"] == "true"


async def test_the_other_routes_record_their_own_kind(http: httpx.AsyncClient):
    for path, body, kind in [
        ("/refunds", {"order_id": "7", "amount": 5}, "refund"),
        ("/notifications", {"booking_id": "b-1", "text": "Paid: 80."}, "notification"),
    ]:
        key = uuid4().hex
        answer = await http.post(path, json=body, headers=headers(key))
        (effect,) = await records(http, "effects", key)
        assert (effect["kind"], effect["parameters"]) == (kind, body)
        assert answer.json()["object"] == kind


async def test_a_request_that_makes_no_sense_leaves_no_trace(http: httpx.AsyncClient, key: str):
    answer = await http.post("/charges", json={"booking_id": "b-1", "amount": 0}, headers=headers(key))
    assert answer.status_code == 422
    assert await records(http, "attempts", key) == []


@pytest.mark.slow
def test_what_was_charged_before_a_kill_is_replayed_after_it(tmp_path: Path):
    ledger = tmp_path / "ledger.jsonl"
    first = start(ledger)
    charged = httpx.post(f"{first.url}/charges", json=CHARGE, headers=headers("k"), trust_env=False)
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(
            f"{first.url}/charges",
            json={**CHARGE, "delay_before": 60},
            headers=headers("cut off"),
            timeout=0.3,
            trust_env=False,
        )
    kill(first)
    with ledger.open("a") as file:
        file.write('{"record":"effect","time":1')  # a line that the machine did not get to finish

    second = start(ledger)
    try:
        replayed = httpx.post(f"{second.url}/charges", json=CHARGE, headers=headers("k"), trust_env=False)
        other = {**CHARGE, "amount": 1}
        mismatch = httpx.post(
            f"{second.url}/charges", json=other, headers=headers("cut off"), trust_env=False
        )
        resumed = httpx.post(
            f"{second.url}/charges", json=CHARGE, headers=headers("cut off"), trust_env=False
        )
    finally:
        kill(second)

    assert replayed.headers["Idempotent-Replayed"] == "true"
    assert replayed.content == charged.content
    assert mismatch.status_code == 400
    assert resumed.status_code == 200
    assert "Idempotent-Replayed" not in resumed.headers
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert [line["key"] for line in lines if line["record"] == "effect"] == ["k", "cut off"]
    assert len([line for line in lines if line["record"] == "attempt"]) == 5


@pytest.mark.slow
def test_a_ledger_has_one_provider(provider: ProviderProcess, tmp_path: Path):
    ledger = httpx.get(f"{provider.url}/health", trust_env=False).json()["ledger"]
    with pytest.raises(ProviderDidNotStart, match="exited with 1"):
        start(Path(ledger), log=tmp_path / "second.log")
    assert "open in another provider" in (tmp_path / "second.log").read_text()


@pytest.mark.slow
def test_it_also_runs_as_a_module(tmp_path: Path):
    command = [sys.executable, "-m", "booking.provider", "--port", "0", "--ledger", str(tmp_path / "l.jsonl")]
    with subprocess.Popen(command, cwd=EXAMPLES, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        assert httpx.get(f"{url}/ledger", trust_env=False).json() == {"attempts": [], "effects": []}
        process.terminate()
