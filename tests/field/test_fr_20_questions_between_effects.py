"""FR-20: a node with several interrupts runs from its start after each answer, and repeated its effects. Here what it
did before a question keeps its key: the provider replays it, also when the worker is killed in between.
"""

from __future__ import annotations

import uuid
from collections import Counter
from pathlib import Path

import pytest

from adapter import faultpoints
from tests.processes import ROOT, faulty

pytestmark = pytest.mark.slow


async def test_each_happens_once(database_url: str, temporal: str, tmp_path: Path) -> None:
    config = ROOT / "tests" / "project" / "langgraph.json"
    async with faulty(database_url, temporal, tmp_path, config=config) as it:
        thread, graph = str(uuid.uuid4()), "asks_between_charges"
        worker = it.workers.start()
        await it.stack.turn(graph, thread=thread, input={"trail": []})
        it.faults.arm(faultpoints.AFTER_EFFECT, hit=2)  # the first is replayed, the second has just acted
        answered = await it.stack.submit(graph, thread=thread, command={"resume": "yes"})
        await worker.ended()
        it.workers.start()
        await it.stack.ended(answered)
        await it.stack.turn(graph, thread=thread, command={"resume": "no"})
        state = await it.stack.state(graph, thread)
        ledger = it.ledger()

        receipts = {effect["parameters"]["booking_id"]: effect["effect_id"] for effect in ledger["effects"]}
        assert list(receipts) == ["first", "second", "third"]
        assert len(ledger["effects"]) == 3
        assert state.values["trail"] == [
            receipts["first"], "yes", receipts["second"], "no", receipts["third"],
        ]  # fmt: skip
        asked = Counter((a["parameters"]["booking_id"], a["key"]) for a in ledger["attempts"])
        # Once a run of the node; the second answer's was begun twice.
        assert sorted((name, times) for (name, _), times in asked.items()) == [
            ("first", 4), ("second", 3), ("third", 1),
        ]  # fmt: skip
