"""FR-9: keys that were derived from what the model said changed with each attempt, so that a retry acted once more.
Here the key is the same whatever the model says, when the worker is killed after the provider has acted.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from adapter import faultpoints
from tests.processes import ROOT, Faulty, faulty

pytestmark = pytest.mark.slow

CONFIG = ROOT / "tests" / "project" / "langgraph.json"


async def _killed_after_the_charge(it: Faulty, graph: str, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Runs a turn; returns its row, and what the model said in its two attempts."""
    it.faults.arm(faultpoints.AFTER_EFFECT)
    killed = it.workers.start()
    thread = str(uuid.uuid4())
    turn = await it.stack.submit(graph, thread=thread, input={"trail": [], "n": 80})
    await killed.ended()
    it.workers.start()
    row = await it.stack.ended(turn)
    said = (folder / "said").read_text().split()
    assert len(set(said)) == 2
    assert len({attempt["key"] for attempt in it.ledger()["attempts"]}) == 1
    return row, said


async def test_what_is_paid_stands_in_the_state(database_url: str, temporal: str, tmp_path: Path) -> None:
    async with faulty(database_url, temporal, tmp_path, config=CONFIG) as it:
        row, said = await _killed_after_the_charge(it, "pays_what_was_agreed", tmp_path)
        trail = (await it.stack.state("pays_what_was_agreed", str(row["thread_id"]))).values["trail"]

        assert row["status"] == "success"
        assert [attempt["outcome"] for attempt in it.ledger()["attempts"]] == ["accepted", "replayed"]
        assert trail == [said[1], it.ledger()["effects"][0]["effect_id"]]


async def test_what_is_paid_is_what_the_model_says(database_url: str, temporal: str, tmp_path: Path) -> None:
    """The same key with another amount: the provider refuses it, the turn fails and says so, nothing is paid twice."""
    async with faulty(database_url, temporal, tmp_path, config=CONFIG) as it:
        row, said = await _killed_after_the_charge(it, "pays_what_the_model_says", tmp_path)
        ledger = it.ledger()

        assert (row["status"], row["error"]["error"]) == ("error", "Refused")
        assert [attempt["outcome"] for attempt in ledger["attempts"]] == ["accepted", "mismatch"]
        assert [effect["parameters"]["amount"] for effect in ledger["effects"]] == [int(said[0])]
