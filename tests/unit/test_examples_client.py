"""The examples' client: what it raises, and the provider that the processes of a machine share."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "deploy" / "examples"))

from deploy.examples.booking import client
from deploy.examples.booking.provider_process import start

# Every one of them starts processes.
pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "deploy" / "examples"
CHARGE_ONCE = """
import asyncio, json, sys
from booking import client
print(json.dumps(asyncio.run(client.charge(booking_id="b-1", amount=80, idempotency_key=sys.argv[1]))))
"""


@pytest.fixture(scope="module")
def shared_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data directory whose provider the first test that charges starts."""
    made = tmp_path_factory.mktemp("shared")
    yield made
    kill_providers(made)


@pytest.fixture
def data_dir(shared_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("BOOKING_PROVIDER_URL", raising=False)
    monkeypatch.setenv("TURNS_DATA_DIR", str(shared_dir))
    return shared_dir


@pytest.fixture
def new_dir(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    kill_providers(tmp_path)


def kill_providers(data_dir: Path) -> int:
    """Kills the providers of this data directory and returns how many there were."""
    ledger = str(data_dir / "booking-ledger.jsonl")
    found = [p for p in psutil.process_iter(["cmdline"]) if ledger in (p.info["cmdline"] or [])]
    for process in found:
        process.kill()
    psutil.wait_procs(found)
    return len(found)


def url_of(data_dir: Path) -> str:
    return (data_dir / "booking-provider.url").read_text()


def effects(data_dir: Path) -> list[dict[str, Any]]:
    return httpx.get(f"{url_of(data_dir)}/ledger", trust_env=False).json()["effects"]


async def test_the_receipt_says_what_was_done(data_dir: Path):
    receipt = await client.refund(order_id="7", amount=5, idempotency_key="receipt")
    assert receipt["object"] == "refund"
    assert receipt["parameters"] == {"order_id": "7", "amount": 5}
    assert receipt == await client.refund(order_id="7", amount=5, idempotency_key="receipt")


async def test_a_charge_in_progress_is_an_error_of_its_own(data_dir: Path):
    await client.notify(booking_id="b-1", text="Hello.", idempotency_key="starts the provider")
    async with httpx.AsyncClient(base_url=url_of(data_dir), trust_env=False) as http:
        body = {"booking_id": "b-1", "amount": 80, "delay_before": 0.3}
        slow = asyncio.create_task(http.post("/charges", json=body, headers={"Idempotency-Key": "busy"}))
        while "busy" not in (await http.get("/ledger")).text:
            await asyncio.sleep(0.01)
        with pytest.raises(client.InProgress) as caught:
            await client.charge(booking_id="b-1", amount=80, idempotency_key="busy")
        await slow
    assert caught.value.in_progress
    assert caught.value.retry_after == 0.5


async def test_a_configured_provider_is_used(data_dir: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(client, "PAUSES_SECONDS", (0.0,))
    monkeypatch.setenv("BOOKING_PROVIDER_URL", "http://127.0.0.1:9/")
    with pytest.raises(httpx.ConnectError):
        await client.charge(booking_id="b-1", amount=80, idempotency_key="nobody there")


async def test_a_refusal_is_not_repeated(data_dir: Path):
    await client.charge(booking_id="b-1", amount=80, idempotency_key="taken")
    with pytest.raises(client.Refused, match="taken") as caught:
        await client.charge(booking_id="b-1", amount=81, idempotency_key="taken")
    assert caught.value.status == 400


@pytest.mark.slow
async def test_a_provider_killed_under_the_client_is_replaced(data_dir: Path):
    receipt = await client.charge(booking_id="b-1", amount=80, idempotency_key="k")
    assert kill_providers(data_dir) == 1

    assert receipt == await client.charge(booking_id="b-1", amount=80, idempotency_key="k")
    assert [effect["effect_id"] for effect in effects(data_dir) if effect["key"] == "k"] == [receipt["id"]]


@pytest.mark.slow
def test_two_processes_at_once_share_one_provider(new_dir: Path):
    (new_dir / "booking-provider.url").write_text("http://127.0.0.1:9")  # left by one that is long dead
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES), "TURNS_DATA_DIR": str(new_dir)}
    environment.pop("BOOKING_PROVIDER_URL", None)
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", CHARGE_ONCE, key], env=environment, stdout=subprocess.PIPE, text=True
        )
        for key in ("one", "two")
    ]
    one, two = (json.loads(worker.communicate()[0]) for worker in workers)

    assert one["id"] != two["id"]
    assert sorted(effect["key"] for effect in effects(new_dir)) == ["one", "two"]
    assert (new_dir / "booking-provider.log").read_text() == "", "a second provider tried to start"
    assert kill_providers(new_dir) == 1


@pytest.mark.slow
def test_a_shared_provider_stops_after_its_last_user(tmp_path: Path):
    users = tmp_path / "users"
    with users.open("w") as user:
        fcntl.flock(user, fcntl.LOCK_SH)
        provider = start(tmp_path / "ledger.jsonl", "--users", str(users), "--linger", "0.2")
        with pytest.raises(subprocess.TimeoutExpired):
            provider.process.wait(timeout=0.6)
    assert provider.process.wait(timeout=10) == 0
