"""Streams that wait on an API process hold no connection; they and the turns next to them are read to their end."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.load.idle import Options, play
from tests.load.judgement import judge, not_kept
from tests.load.served import POOL_SIZE, client_of, served

pytestmark = pytest.mark.slow

OPTIONS = Options(idle=20, active=5, waves=1, window=2.0, seed=1)


async def test_nothing_is_held_and_nothing_lost(database_url: str, temporal: str, tmp_path: Path) -> None:
    async with served(database_url, temporal, tmp_path, apis=1) as it, client_of(it.apis[0]) as http:
        before = await _answered_at(http)
        played = await play(it, OPTIONS, print)
        found = await judge(database_url, played.idle + played.active)
        # A client's connection outlives the pause between two requests that clients make on one.
        assert await _answered_at(http) == before
    assert POOL_SIZE < OPTIONS.idle
    assert (found.broken, not_kept(played, OPTIONS)) == ([], [])
    assert found.complete == OPTIONS.idle + OPTIONS.active


async def _answered_at(http: httpx.AsyncClient) -> object:
    """Returns the client's end of the connection that a request was answered on."""
    answered = (await http.get("/ok")).raise_for_status()
    return answered.extensions["network_stream"].get_extra_info("client_addr")
