"""FR-1: a node longer than some three minutes was run again although its first run completed. Here it runs once."""

from __future__ import annotations

import pytest

from adapter.settings import Settings
from tests.field.long_nodes import runs_once

DEFAULTS = {
    name: Settings.model_fields[name].default
    for name in ("heartbeat_timeout", "node_timeout", "shutdown_grace")
}


@pytest.mark.slow
async def test_one_that_outlives_every_timeout_but_its_own(database_url: str, temporal: str) -> None:
    """A 40th of the real figures."""
    await runs_once(database_url, temporal, seconds=5.0, heartbeat_timeout=1.5, node_timeout=60.0)


@pytest.mark.faults
@pytest.mark.timeout(400)
async def test_three_and_a_half_minutes_with_the_default_settings(database_url: str, temporal: str) -> None:
    await runs_once(database_url, temporal, seconds=210.0, **DEFAULTS)
