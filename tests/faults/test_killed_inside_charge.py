"""SIGKILL of the worker around the charge: the turn goes on elsewhere, the provider is asked again and acts once."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from adapter import faultpoints
from tests.processes import faulty

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.mark.parametrize(
    ("point", "attempts"),
    [
        (faultpoints.BEFORE_EFFECT, 1),  # killed before the provider heard of it
        (faultpoints.AFTER_EFFECT, 2),
        (faultpoints.AFTER_JOURNAL, 2),
    ],
)
async def test_the_turn_completes_and_charges_once(
    database_url: str, temporal: str, tmp_path: Path, point: str, attempts: int
) -> None:
    async with faulty(database_url, temporal, tmp_path) as it:
        it.faults.arm(point)
        armed = it.workers.start()
        thread = str(uuid.uuid4())
        turn = await it.stack.submit(
            "booking",
            thread=thread,
            input={"booking_id": "b-1", "amount": 80},
            stream_mode=["values", "updates"],
        )
        await armed.ended()
        it.workers.start()
        row = await it.stack.ended(turn)

        assert row["status"] == "success"
        assert it.count("attempts", "charge") == attempts
        assert it.count("effects", "charge") == 1
        assert it.count("effects", "notification") == 1
        # The step is in the event log once, although it ran twice.
        updates = [next(iter(data)) for name, data in await it.stack.events(turn) if name == "updates"]
        assert updates == ["plan", "charge", "notify", "finish"]
        assert (await it.stack.activities(thread)) == ["turn:begin", "charge", "notify"]
