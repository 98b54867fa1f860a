"""SIGKILL just when a turn stops for a person: the next attempt neither walks past nor answers by itself."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from adapter import faultpoints
from tests.processes import ROOT, Faulty, faulty

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
PROJECT = ROOT / "tests" / "project" / "langgraph.json"


async def _killed_at(it: Faulty, point: str, graph: str, thread: str, **request: Any) -> str:
    it.faults.arm(point)
    armed = it.workers.start()
    turn = await it.stack.submit(graph, thread=thread, **request)
    await armed.ended()
    it.workers.start()
    row = await it.stack.ended(turn)
    assert row["status"] == "success"
    return turn


@pytest.mark.parametrize(("graph", "before"), [("breakpoint", ["a"]), ("breakpoint_inside", [])])
async def test_a_breakpoint_is_not_passed(
    database_url: str, temporal: str, tmp_path: Path, graph: str, before: list[str]
) -> None:
    async with faulty(database_url, temporal, tmp_path, config=PROJECT) as it:
        thread = str(uuid.uuid4())
        await _killed_at(it, faultpoints.AFTER_INPUT, graph, thread, input={"trail": []})
        state = await it.stack.state(graph, thread)

        assert state.values.get("trail", []) == before
        assert state.next

        await it.stack.turn(graph, thread=thread, input=None)
        assert (await it.stack.state(graph, thread)).values["trail"][-2:] != before
        assert "approved" in (await it.stack.state(graph, thread)).values["trail"]


async def test_the_next_question_is_not_answered_by_the_last_answer(
    database_url: str, temporal: str, tmp_path: Path
) -> None:
    async with faulty(database_url, temporal, tmp_path, config=PROJECT) as it:
        thread = str(uuid.uuid4())
        first = it.workers.start()
        await it.stack.turn("asking_twice", thread=thread, input={"trail": []})
        first.kill()
        first.wait(10)
        await _killed_at(it, faultpoints.BEFORE_END, "asking_twice", thread, command={"resume": "1"})
        state = await it.stack.state("asking_twice", thread)
        assert [i.value for i in state.interrupts] == ["two?"]

        await it.stack.turn("asking_twice", thread=thread, command={"resume": "2"})
        assert (await it.stack.state("asking_twice", thread)).values["trail"] == ["1 2"]
