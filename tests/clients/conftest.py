"""One worker and one API for all Node scripts of this package."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest_asyncio

from tests.api.graphs import asking, failing, nested, steps
from tests.api.serving import serving
from tests.clients.gates import Gates
from tests.clients.graphs import chat
from tests.clients.node import Report, run_script
from tests.graphs.models import InPieces, scripted_agent
from tests.proxy import proxy
from tests.servers import Postgres

RunScript = Callable[[str], Awaitable[Report]]


@pytest_asyncio.fixture(scope="package")
async def script(postgres: Postgres, temporal: str) -> AsyncIterator[RunScript]:
    """Runs scripts against an API that serves the graphs."""
    gates = Gates()
    graphs: dict[str, Any] = {
        "steps": steps("a", "b"),
        "asking": asking(),
        "failing": failing(),
        "nested": nested(),
        "chat": chat(gates),
        "agent": scripted_agent(),
        "calling": scripted_agent(InPieces()),
    }
    async with serving(postgres.clone(), temporal, graphs, webhook_private=True) as api:
        async with proxy(int(api.url.rpartition(":")[2])) as way, gates.served(way.cut) as gates_url:
            cut = f"http://127.0.0.1:{way.port}"
            yield lambda name: run_script(name, api=api.url, gates=gates_url, cut=cut)
