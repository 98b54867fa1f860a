"""Streams that wait on an API process hold no connection; they and the turns next to them are read to their end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.load.idle import Options, play
from tests.load.judgement import judge, not_kept
from tests.load.served import POOL_SIZE, served

pytestmark = pytest.mark.slow

OPTIONS = Options(idle=20, active=5, waves=1, window=2.0, seed=1)


async def test_nothing_is_held_and_nothing_lost(database_url: str, temporal: str, tmp_path: Path) -> None:
    async with served(database_url, temporal, tmp_path, apis=1) as it:
        played = await play(it, OPTIONS, print)
        found = await judge(database_url, played.idle + played.active)
    assert POOL_SIZE < OPTIONS.idle
    assert (found.broken, not_kept(played, OPTIONS)) == ([], [])
    assert found.complete == OPTIONS.idle + OPTIONS.active
