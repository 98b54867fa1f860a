"""Turns recorded by earlier versions replay on today's workflow code (I1). How to record: `tests/replay/record.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from tests.replay.record import FOLDER, RECORDINGS
from tests.workflow.sandbox import sandbox
from workflows.turn import TurnWorkflow

HISTORIES = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("path", HISTORIES, ids=lambda p: p.stem)
async def test_recorded_turns_replay(path: Path) -> None:
    history = WorkflowHistory.from_json(path.stem, path.read_text())
    replayer = Replayer(workflows=[TurnWorkflow], workflow_runner=sandbox())

    await replayer.replay_workflow(history)


def test_every_kind_is_recorded() -> None:
    assert {path.stem for path in HISTORIES} >= set(RECORDINGS)
