"""FR-15: a blocking client starves the heartbeats. The node is named in a warning and fenced; effects happen once."""

from __future__ import annotations

import asyncio
import itertools
import re
import uuid
from pathlib import Path

import pytest

from tests.field.told import field

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


async def test_it_is_named_and_fenced_and_charges_once(
    database_url: str, temporal: str, tmp_path: Path
) -> None:
    async with field(database_url, temporal, tmp_path, heartbeat_timeout=2.0) as on:
        await on.two_workers()
        turn = await on.it.stack.submit("blocking", thread=on.thread, input={"trail": []})
        blocked, other = await on.who_begun()
        warning = await blocked.says("warning: .* keeps its event loop.*")
        row = await on.it.stack.ended(turn)
        trail = await on.trail("blocking")
        assert "runs again" not in blocked.text

        on.lets_go()
        fenced = await blocked.says(
            r'warning: node \(attempt 1\): scope ".*" of thread .* is claimed by (.*)'
        )
        await blocked.says("the event loop runs again")

        assert (row["status"], trail[1:]) == ("success", ["last"])
        assert (on.told[0], on.told[-1]) == (("begun", blocked.pid), ("goes on", blocked.pid))
        assert f'node "node" of turn {turn} on thread {on.thread} keeps its event loop' in warning[0]
        assert re.search(r"tests/field/project/stopping\.py:\d+ in _blocks_if;", warning[0])
        # The blocked worker may have taken the second attempt, too: it had asked for work before it was blocked.
        assert re.fullmatch(r"\d+/[2-9], not by this attempt \d+/1", fenced[1])
        assert await on.trail("blocking") == trail
        # The blocked one did not even ask the provider when it woke.
        assert on.it.count("attempts", "charge") == on.told.count(("goes on", other.pid))
        assert on.it.count("effects", "charge") == 1


async def test_it_takes_no_more_work_than_it_had_asked_for(
    database_url: str, temporal: str, tmp_path: Path
) -> None:
    """What a blocked worker takes waits for it; it asks for five activities at a time."""
    async with field(database_url, temporal, tmp_path, heartbeat_timeout=3600.0) as on:
        await on.two_workers()
        blocking = await on.it.stack.submit("blocking", thread=on.thread, input={"trail": []})
        await on.who_begun()
        submitting = [
            on.it.stack.submit("quick", thread=str(uuid.uuid4()), input={"trail": []}) for _ in range(40)
        ]
        turns = await asyncio.gather(*submitting)
        ending = [asyncio.create_task(on.it.stack.ended(turn)) for turn in turns]
        for ended in itertools.islice(asyncio.as_completed(ending), len(turns) - 5):
            assert (await ended)["status"] == "success"

        on.lets_go()
        rows = [*await asyncio.gather(*ending), await on.it.stack.ended(blocking)]
        assert {row["status"] for row in rows} == {"success"}
