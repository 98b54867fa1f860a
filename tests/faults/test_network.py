"""Connections that break, hang and heal in the middle of a turn, and PostgreSQL's crash: as if nothing had been.

The worker stands still at a fault point while it happens, so that it happens just there; see `tests/faults/cells.py`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from adapter import faultpoints
from tests import servers
from tests.faults.cells import Act, Cell, Matrix, matrix

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

ACTS: tuple[Act, ...] = (
    "cut postgres",
    "hang postgres",
    "crash postgres",
    "cut temporal",
    "lose temporal",
    "lose both",
)
CELLS = [
    Cell(point, act, scenario)
    for scenario in ("fan-out", "resumed")
    for point in (
        faultpoints.BEFORE_INPUT,
        faultpoints.AFTER_EFFECT,
        faultpoints.IN_CHECKPOINT,
        faultpoints.BEFORE_COMPLETION,
        faultpoints.BEFORE_END,
    )
    for act in ACTS
]
FEW = [Cell(faultpoints.AFTER_EFFECT, act, "sequence") for act in ACTS]


@pytest.fixture(scope="module")
def crashing() -> Iterator[servers.Postgres]:
    with servers.postgres(crashes=True) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def played(
    crashing: servers.Postgres, temporal: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Matrix]:
    folder = tmp_path_factory.mktemp("network")
    async with matrix(crashing, temporal, folder, os.environ.get("SEED", "1")) as it:
        yield it


@pytest.mark.parametrize("cell", FEW, ids=str)
async def test_some_cells(played: Matrix, cell: Cell) -> None:
    await played.judge(cell)


@pytest.mark.faults
@pytest.mark.parametrize("cell", CELLS, ids=str)
async def test_every_cell(played: Matrix, cell: Cell) -> None:
    await played.judge(cell)


@pytest.mark.faults
async def test_nothing_came_late_to_every_cell(played: Matrix) -> None:
    await played.nothing_came_late()


async def test_nothing_came_late_to_some_cells(played: Matrix) -> None:
    await played.nothing_came_late()
