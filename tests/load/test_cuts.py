"""Clients die at any byte of a stream, a hundred times, and go on at either of two API processes: nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.load.cuts import play
from tests.load.judgement import judge
from tests.load.served import served

pytestmark = pytest.mark.slow


async def test_what_they_read_is_the_stream(database_url: str, temporal: str, tmp_path: Path) -> None:
    async with served(database_url, temporal, tmp_path, apis=2) as it:
        found = await play(it, seed=1, cuts=100)
        judged = await judge(database_url, found.readings)
    assert (found.different, judged.broken) == ([], [])
    assert found.made.total() == 100
    assert min(found.made[0], found.made[1]) > 0
    assert found.inside > 0
    assert 0 < found.ended < 100  # some died while their run went on, some after it
