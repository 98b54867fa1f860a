"""SIGKILL of API, worker, Temporal and PostgreSQL in the middle of a charge; the next start finishes the turn."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import httpx
import pytest

from deploy.examples.booking.provider_process import start
from tests.faults.test_local_stack import Dev, running, until
from tests.processes import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def test_a_turn_survives_and_charges_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = start(tmp_path / "ledger.jsonl", "--delay-after", "2")
    monkeypatch.setitem(os.environ, "BOOKING_PROVIDER_URL", provider.url)
    dev = Dev(tmp_path)

    def ledger(what: str) -> list[str]:
        entries = httpx.get(f"{provider.url}/ledger", trust_env=False).json()[what]
        return [entry["kind"] for entry in entries]

    flags = ("--config", str(ROOT / "langgraph.json"))
    try:
        dev.start(*flags)
        thread = dev.request("POST", "/threads", {})["thread_id"]
        body = {
            "assistant_id": "booking",
            "input": {"booking_id": "b-1", "amount": 80},
            "stream_mode": "updates",
        }
        run = dev.request("POST", f"/threads/{thread}/runs", body)["run_id"]
        until(lambda: "charge" in ledger("effects"), "the provider's charge")

        everything = dev.everything()
        for process in everything:
            process.kill()
        dev.end(signal.SIGKILL)
        until(lambda: not running(everything), "the end of every process", 15)
        dev.start(*flags)

        def ended() -> str | None:
            status = dev.request("GET", f"/threads/{thread}/runs/{run}")["status"]
            return None if status in ("pending", "running") else status

        assert until(ended, "the turn's end") == "success"
        assert ledger("attempts").count("charge") == 2
        assert sorted(ledger("effects")) == ["charge", "notification"]
        values = dev.request("GET", f"/threads/{thread}/state")["values"]
        assert values["messages"][-1]["content"].startswith("Booked b-1 for 80.")
    finally:
        if not dev.process_ended:
            dev.end()
        provider.process.kill()
        provider.process.wait(10)
