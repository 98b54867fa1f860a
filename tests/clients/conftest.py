"""One worker and one API for all Node scripts of this package."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest_asyncio

from tests.api.graphs import asking, failing, nested, steps
from tests.api.serving import Serving, serving
from tests.clients.gates import Gates
from tests.clients.graphs import chat
from tests.clients.node import Report, run_script
from tests.servers import Postgres

RunScript = Callable[[str], Awaitable[Report]]


@pytest_asyncio.fixture(scope="package")
async def served(postgres: Postgres, temporal: str) -> AsyncIterator[tuple[Serving, str]]:
    """Serves the graphs; yields the API and the URL of the gates."""
    gates = Gates()
    graphs: dict[str, Any] = {
        "steps": steps("a", "b"),
        "asking": asking(),
        "failing": failing(),
        "nested": nested(),
        "chat": chat(gates),
    }
    async with gates.served() as gates_url, serving(postgres.clone(), temporal, graphs) as api:
        yield api, gates_url


@pytest_asyncio.fixture(scope="package")
async def script(served: tuple[Serving, str]) -> RunScript:
    """Runs a script against the API."""
    api, gates_url = served
    return lambda name: run_script(name, api.url, gates_url)
