"""SIGKILL and a long freeze at every fault point of a worker, on several graphs: as if nothing had been.

`make test` plays a few cells, `make faults` plays all of them; SEED chooses which hit of a point in which turn it is.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from adapter import faultpoints
from tests.faults.cells import Act, Cell, Matrix, matrix
from tests.servers import Postgres

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

ANYWHERE = (
    faultpoints.BEFORE_CLAIM,
    faultpoints.BEFORE_INPUT,
    faultpoints.AFTER_INPUT,
    faultpoints.BEGIN_COMMITTED,
    faultpoints.BEFORE_EFFECT,
    faultpoints.AFTER_EFFECT,
    faultpoints.AFTER_JOURNAL,
    faultpoints.BEFORE_CHECKPOINT,
    faultpoints.IN_CHECKPOINT,
    faultpoints.AFTER_CHECKPOINT,
    faultpoints.BEFORE_COMPLETION,
    faultpoints.BEFORE_END,
)
ONLY_IN = {
    faultpoints.IN_FINISH: "cancelled",
    faultpoints.IN_FAILURE: "failed, one queued",
    faultpoints.AFTER_FAILURE: "failed, one queued",
    faultpoints.IN_HAND_OVER: "failed, one queued",
    faultpoints.AFTER_COMPENSATION: "taken back",
}
ACTS: tuple[Act, ...] = ("kill", "freeze")
CELLS = [
    *(
        Cell(point, act, scenario)
        for scenario in ("sequence", "fan-out", "nested", "resumed")
        for point in ANYWHERE
        for act in ACTS
    ),
    *(Cell(point, act, scenario) for point, scenario in ONLY_IN.items() for act in ACTS),
]
# Some more of them are field reports, in `tests/field/test_fr_02_05_08_28_faults.py`.
FEW = [
    Cell(faultpoints.BEFORE_CLAIM, "freeze", "sequence"),
    Cell(faultpoints.AFTER_EFFECT, "kill", "sequence"),
    Cell(faultpoints.IN_CHECKPOINT, "kill", "fan-out"),
    Cell(faultpoints.AFTER_EFFECT, "kill", "resumed"),
    Cell(faultpoints.IN_CHECKPOINT, "freeze", "fan-out"),
    Cell(faultpoints.IN_HAND_OVER, "kill", "failed, one queued"),
    Cell(faultpoints.IN_FINISH, "kill", "cancelled"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def played(
    postgres: Postgres, temporal: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Matrix]:
    seed = os.environ.get("SEED", "1")
    async with matrix(postgres, temporal, tmp_path_factory.mktemp("matrix"), seed) as it:
        yield it


def test_all_points_are_in_the_matrix() -> None:
    in_it = {cell.point for cell in CELLS}
    known = {value for name, value in vars(faultpoints).items() if name.isupper() and name[0] != "_"}
    assert known - in_it == {faultpoints.AFTER_RECORD}  # of the API, see test_api_killed.py


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
