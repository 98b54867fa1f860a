"""FR-18: SIGTERM lost the run that SIGKILL recovers. Both recover here: another worker goes on; effects happen once."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.field.told import field

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

# Nobody waits for it: what is handed back goes on at once.
NEVER = 3600.0

LONG = pytest.mark.faults


@pytest.mark.parametrize("graph", ["patient", "stubborn"])
async def test_a_node_that_outlives_the_grace_is_handed_back(
    database_url: str, temporal: str, tmp_path: Path, graph: str
) -> None:
    """The synchronous one does not stop: it is handed back all the same, and its process ends without it."""
    async with field(
        database_url, temporal, tmp_path, heartbeat_timeout=NEVER, TURNS_SHUTDOWN_GRACE="0.5"
    ) as on:
        await on.two_workers()
        turn = await on.it.stack.submit(graph, thread=on.thread, input={"trail": []})
        first, second = await on.who_begun()
        first.send_signal(signal.SIGTERM)
        await on.hears("begun", 2)
        code = await first.ended()
        on.lets_go()
        row = await on.it.stack.ended(turn)

        assert row["status"] == "success"
        assert await on.trail(graph) == [graph, "last"]
        assert [pid for what, pid in on.told if what == "begun"] == [first.pid, second.pid]
        assert code == {"patient": 0, "stubborn": 1}[graph]
        assert f"turn {turn} effect node attempt 1 is handed back" in first.text
        assert (graph == "patient") == (on.told[1] == ("left", first.pid))


@pytest.mark.parametrize("graph", ["charging", pytest.param("charging_sync", marks=LONG)])
async def test_an_effect_that_ends_within_the_grace_is_not_repeated(
    database_url: str, temporal: str, tmp_path: Path, graph: str
) -> None:
    async with field(database_url, temporal, tmp_path, "--delay-after", "1.5", heartbeat_timeout=NEVER) as on:
        first = on.it.workers.start()
        turn = await on.it.stack.submit(graph, thread=on.thread, input={"trail": []})
        await on.charged()
        first.send_signal(signal.SIGTERM)
        code = await first.ended()
        on.it.workers.start()
        row = await on.it.stack.ended(turn)

        assert (row["status"], code) == ("success", 0)
        assert (on.it.count("attempts", "charge"), on.it.count("effects", "charge")) == (1, 1)
        assert "attempt 1 is handed back" not in first.text


@LONG
@pytest.mark.parametrize("graph", ["charging", "charging_sync"])
@pytest.mark.parametrize(("delay", "journaled"), [("2", True), ("9", False)])
async def test_an_effect_that_outlives_the_grace_happens_once(
    database_url: str, temporal: str, tmp_path: Path, graph: str, delay: str, journaled: bool
) -> None:
    """The short one ends in the seconds after the grace; the long one is still under way when it is asked again."""
    async with field(
        database_url, temporal, tmp_path, "--delay-after", delay,
        heartbeat_timeout=NEVER, TURNS_SHUTDOWN_GRACE="0.2",
    ) as on:  # fmt: skip
        await on.two_workers()
        turn = await on.it.stack.submit(graph, thread=on.thread, input={"trail": []})
        await on.charged()
        first, _ = await on.who_begun()
        first.send_signal(signal.SIGTERM)
        await on.hears("begun", 2)
        (effect,) = await on.effects()
        row = await on.it.stack.ended(turn)

        assert row["status"] == "success"
        assert on.it.count("effects", "charge") == 1
        assert on.it.count("attempts", "charge") >= 2
        assert (effect["state"] == "finished") == journaled
        assert "is handed back" in first.text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_both_recover(database_url: str, temporal: str, tmp_path: Path, number: signal.Signals) -> None:
    """In the middle of a charge, longer than the grace."""
    async with field(
        database_url, temporal, tmp_path, "--delay-after", "3", TURNS_SHUTDOWN_GRACE="0.2"
    ) as on:
        first = on.it.workers.start()
        turn = await on.it.stack.submit("charging", thread=on.thread, input={"trail": []})
        await on.charged()
        first.send_signal(number)
        await first.ended()
        on.it.workers.start()
        row = await on.it.stack.ended(turn)

        assert row["status"] == "success"
        assert (await on.trail("charging"))[1:] == ["last"]
        assert on.it.count("attempts", "charge") >= 2
        assert on.it.count("effects", "charge") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=LONG)])
async def test_a_second_signal_ends_at_once_and_loses_nothing_either(
    database_url: str, temporal: str, tmp_path: Path, number: signal.Signals
) -> None:
    async with field(database_url, temporal, tmp_path, TURNS_SHUTDOWN_GRACE="60") as on:
        first = on.it.workers.start()
        turn = await on.it.stack.submit("patient", thread=on.thread, input={"trail": []})
        await on.hears("begun")
        first.send_signal(signal.SIGTERM)
        await first.says("stopping: 1 attempts")
        first.send_signal(number)
        code = await first.ended()
        on.lets_go()
        on.it.workers.start()
        row = await on.it.stack.ended(turn)

        assert (row["status"], code) == ("success", -number)
        assert await on.trail("patient") == ["patient", "last"]


async def test_a_node_that_blocks_its_event_loop_does_not_keep_the_process(
    database_url: str, temporal: str, tmp_path: Path
) -> None:
    async with field(database_url, temporal, tmp_path, TURNS_SHUTDOWN_GRACE="0.2") as on:
        first = on.it.workers.start()
        turn = await on.it.stack.submit("blocking", thread=on.thread, input={"trail": []})
        await on.hears("begun")
        first.send_signal(signal.SIGTERM)
        code = await first.ended()
        on.lets_go()
        on.it.workers.start()
        row = await on.it.stack.ended(turn)

        assert (row["status"], code) == ("success", 1)
        assert "a node does not stop" in first.text
        assert on.it.count("effects", "charge") == 1
