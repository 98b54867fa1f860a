"""SIGKILL while a failed turn's effects are undone: the rest is undone elsewhere, nothing is given back twice."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from adapter import faultpoints
from adapter.store import requests
from tests.processes import ROOT, faulty
from tests.workflow.resets import closed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
PROJECT = ROOT / "tests" / "project" / "langgraph.json"


async def test_each_charge_is_given_back_once_in_reverse(
    database_url: str, temporal: str, tmp_path: Path
) -> None:
    async with faulty(database_url, temporal, tmp_path, config=PROJECT) as it:
        it.faults.arm(faultpoints.AFTER_COMPENSATION)
        killed = it.workers.start()
        thread = str(uuid.uuid4())
        turn = await it.stack.submit("giving_back", thread=thread, input={"amounts": [10, 20]})
        await killed.ended()
        it.workers.start()
        await closed(it.stack, thread)

        assert (await it.stack.ended(turn))["error"]["error"] == "ValueError"
        assert it.count("attempts", "refund") == 3
        given_back = [e["parameters"]["amount"] for e in it.ledger()["effects"] if e["kind"] == "refund"]
        assert given_back == [20, 10]
        journal = await requests.list_effects(it.stack.pool, thread)
        assert [(row["state"], row["compensations"]) for row in journal] == [
            ("compensated", 1),
            ("compensated", 2),
        ]
