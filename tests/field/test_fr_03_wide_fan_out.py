"""FR-3: a race dropped the pending writes of other tasks. Here a fan-out of fifty keeps all its writes and runs no task
again, also when the worker is killed in the middle: only what it had under way is attempted once more.
"""

from __future__ import annotations

import uuid
from collections import Counter
from pathlib import Path

import pytest

from adapter import faultpoints
from tests.graphs.calls import CALLS
from tests.graphs.shapes import send_to_many
from tests.processes import ROOT, Faulty, faulty
from tests.stack import stack

WIDE = 50
TRAIL = [f"work{n}" for n in range(WIDE)]


@pytest.mark.slow
async def test_all_writes_are_kept(database_url: str, temporal: str) -> None:
    CALLS.clear()
    async with stack(database_url, temporal, {"graph": send_to_many()}) as running:
        thread = str(uuid.uuid4())
        await running.turn(thread=thread, input={"trail": [], "n": WIDE})
        trail = (await running.state("graph", thread)).values["trail"]
        activities = Counter(await running.activities(thread))

    assert trail == ["plan", *TRAIL, "sum"]
    assert Counter(CALLS) == {"plan": 1, "work": WIDE, "sum": 1}
    assert activities["work"] == WIDE


def _attempts(it: Faulty) -> Counter[str]:
    """How often each task ran: it asks the provider once each time."""
    return Counter(attempt["parameters"]["booking_id"] for attempt in it.ledger()["attempts"])


@pytest.mark.slow
async def test_a_worker_killed_in_the_middle(database_url: str, temporal: str, tmp_path: Path) -> None:
    async with faulty(
        database_url, temporal, tmp_path, config=ROOT / "tests" / "project" / "langgraph.json"
    ) as it:
        # Ten at a time: when the 25th is through, some fifteen are stored and some twenty-five have not begun.
        it.faults.arm(faultpoints.AFTER_JOURNAL, hit=25)
        killed = it.workers.start(TURNS_CONCURRENT_EFFECTS="10")
        thread = str(uuid.uuid4())
        turn = await it.stack.submit("wide", thread=thread, input={"trail": [], "n": WIDE})
        await killed.ended()
        snapshot = await it.stack.state("wide", thread)
        stored = {
            f"b{task.result['trail'][0].removeprefix('work')}" for task in snapshot.tasks if task.result
        }
        before = _attempts(it)
        it.workers.start()
        row = await it.stack.ended(turn)
        after = _attempts(it)

        assert row["status"] == "success"
        assert (await it.stack.state("wide", thread)).values["trail"] == [*TRAIL, "sum"]
        assert it.count("effects", "charge") == WIDE
        assert 10 <= len(stored) < 25
        # What was stored is not run again; all else is, once.
        assert set(after - before) == {f"b{n}" for n in range(WIDE)} - stored
        assert max(after.values()) == 2
