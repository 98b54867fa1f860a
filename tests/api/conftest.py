"""One worker and one API for all tests of a module that ask for it: most tests need no others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
import pytest_asyncio

from tests.api.graphs import Held
from tests.api.serving import Serving, serving
from tests.servers import Postgres


@pytest_asyncio.fixture(scope="module")
async def api(request: pytest.FixtureRequest, postgres: Postgres, temporal: str) -> AsyncIterator[Serving]:
    """Serves the module's `GRAPHS`, with its `SETTINGS` if it has any."""
    module = cast("Any", request).module
    settings: dict[str, Any] = getattr(module, "SETTINGS", {})
    async with serving(postgres.clone(), temporal, module.GRAPHS, **settings) as it:
        yield it


@pytest.fixture
def held(request: pytest.FixtureRequest) -> Held:
    """The module's `HELD`, as new."""
    one: Held = cast("Any", request).module.HELD
    one.reset()
    return one
