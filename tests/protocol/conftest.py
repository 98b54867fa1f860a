"""One worker and one API for all tests of the package."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.api.graphs import Held
from tests.api.serving import Serving, serving
from tests.protocol.graphs import GRAPHS, HELD
from tests.servers import Postgres


@pytest_asyncio.fixture(scope="package")
async def api(postgres: Postgres, temporal: str) -> AsyncIterator[Serving]:
    """Serves the package's graphs."""
    async with serving(postgres.clone(), temporal, GRAPHS) as it:
        yield it


@pytest.fixture
def held() -> Held:
    """What decides how long the graph "held" runs, as new."""
    HELD.reset()
    return HELD
