"""A rolling restart under load, and a short soak: SIGKILL of a process of each kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.soak.soaking import Options, soak
from tests.soak.stack import KINDS, OURS, Soaked, soaked

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Soaked]:
    with soaked(tmp_path_factory.mktemp("soak")) as it:
        yield it


@pytest.mark.parametrize(
    ("rolling", "kinds"),
    [
        pytest.param(True, OURS, id="restarted"),
        # A turn whose API process died before it submitted it may have to wait for the sweep, for 90 s.
        pytest.param(False, KINDS, id="killed", marks=pytest.mark.faults),
    ],
)
async def test_nothing_is_lost_and_nothing_doubled(
    stack: Soaked, rolling: bool, kinds: tuple[str, ...]
) -> None:
    stack.ended.clear()
    options = Options(threads=6, turns=2, at_once=6, seed=1, every=3.0, rolling=rolling, rounds=1)
    found, _ = await soak(stack, options)
    assert (found.lost, found.doubled) == ([], [])
    assert found.turns >= 12
    assert set(stack.ended) == set(kinds)
