"""FR-14: a heartbeat timeout without heartbeats is a kill switch. Attempts beat by themselves here: slow nodes live."""

from __future__ import annotations

import pytest

from tests.field.long_nodes import runs_once

pytestmark = pytest.mark.slow


async def test_a_node_several_times_as_long_as_the_timeout(database_url: str, temporal: str) -> None:
    await runs_once(database_url, temporal, seconds=7.0, heartbeat_timeout=2.0)


@pytest.mark.faults
async def test_a_minute_with_a_timeout_of_five_seconds(database_url: str, temporal: str) -> None:
    await runs_once(database_url, temporal, seconds=60.0, heartbeat_timeout=5.0)
