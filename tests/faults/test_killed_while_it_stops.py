"""SIGKILL of a worker whose turn was cancelled and has not stopped yet: the turn ends as stopped, not as failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.field.told import field
from workflows import names

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


async def test_the_turn_is_stopped(database_url: str, temporal: str, tmp_path: Path) -> None:
    async with field(database_url, temporal, tmp_path) as on:
        await on.two_workers()
        turn = await on.it.stack.submit("stubborn", thread=on.thread, input={"trail": []})
        worker, _ = await on.who_begun()
        handle = on.it.stack.client.get_workflow_handle(names.workflow_id(on.thread))
        await handle.signal(names.CANCEL, turn)
        await on.hears("swallowed")
        worker.kill()
        row = await on.it.stack.ended(turn)

        assert (row["status"], row["error"]["error"]) == ("interrupted", "UserInterrupt")
        on.lets_go()
        assert (await on.it.stack.turn("patient", thread=on.thread, input={"trail": []}))[
            "status"
        ] == "success"
