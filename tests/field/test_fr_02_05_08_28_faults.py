"""Field reports 2, 5, 8 and 28, each as cells of the fault matrix (`tests/faults/`): all is as in the undisturbed turn.

2: pending writes and checkpoint are not ordered; a crash between them executes a node again.
5: a frozen worker thaws after its lease and overwrites its replacement, or forks the thread.
8: the state is stored before Temporal recorded the completion, then a crash: the conversation is wedged.
28: the saver dies behind a pooler or an idle timeout; here PostgreSQL crashes in the middle of a turn.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from adapter import faultpoints
from tests import servers
from tests.faults.cells import Cell, Matrix, matrix

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def crashing() -> Iterator[servers.Postgres]:
    with servers.postgres(crashes=True) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def played(
    crashing: servers.Postgres, temporal: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Matrix]:
    folder = tmp_path_factory.mktemp("reports")
    async with matrix(crashing, temporal, folder, os.environ.get("SEED", "1")) as it:
        yield it


@pytest.mark.parametrize(
    "point", [faultpoints.BEFORE_CHECKPOINT, faultpoints.IN_CHECKPOINT, faultpoints.AFTER_CHECKPOINT]
)
async def test_fr_02_killed_at_a_write_boundary(played: Matrix, point: str) -> None:
    await played.judge(Cell(point, "kill", "sequence"))


async def test_fr_05_a_frozen_worker_thaws(played: Matrix) -> None:
    await played.judge(Cell(faultpoints.AFTER_EFFECT, "freeze", "sequence"))
    await played.nothing_came_late()


async def test_fr_08_killed_between_commit_and_completion(played: Matrix) -> None:
    await played.judge(Cell(faultpoints.BEFORE_COMPLETION, "kill", "nested"))


async def test_fr_28_postgresql_crashes(played: Matrix) -> None:
    await played.judge(Cell(faultpoints.IN_CHECKPOINT, "crash postgres", "sequence"))
