"""FR-25: a wrong `Content-Location` made clients join a run that does not exist. Here it is exact on every route.

Clients read the run's id from its end; `Location` is where the same answer is fetched again, and is relative.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import pytest_asyncio

from tests.api.graphs import Held
from tests.api.serving import Serving, fresh, serving
from tests.protocol.graphs import agent
from tests.servers import Postgres

HELD = Held()
ON_THREAD = "/threads/{thread}/runs/{run}"
STATELESS = "/runs/{run}"


@dataclass(frozen=True)
class Places:
    """Where a route says that its run is; None for a header that it does not have."""

    content_location: str | None
    location: str | None = None


ROUTES = {
    "POST /threads/{thread_id}/runs": Places(ON_THREAD),
    "POST /threads/{thread_id}/runs/stream": Places(ON_THREAD, f"{ON_THREAD}/stream"),
    "POST /threads/{thread_id}/runs/wait": Places(ON_THREAD, f"{ON_THREAD}/join"),
    "GET /threads/{thread_id}/runs": Places(None),
    "GET /threads/{thread_id}/runs/{run_id}": Places(None),
    "DELETE /threads/{thread_id}/runs/{run_id}": Places(None),
    "GET /threads/{thread_id}/runs/{run_id}/join": Places(ON_THREAD, f"{ON_THREAD}/join"),
    "GET /threads/{thread_id}/runs/{run_id}/stream": Places(ON_THREAD, f"{ON_THREAD}/stream"),
    "POST /threads/{thread_id}/runs/{run_id}/cancel": Places(ON_THREAD, f"{ON_THREAD}/join"),
    "POST /runs": Places(STATELESS),
    "POST /runs/stream": Places(STATELESS, f"{STATELESS}/stream"),
    "POST /runs/wait": Places(ON_THREAD, f"{ON_THREAD}/join"),
    "GET /runs/{run_id}/stream": Places(STATELESS, f"{STATELESS}/stream"),
}
# They name several runs, or none.
OTHERS = {"POST /runs/cancel", "POST /runs/batch"}


@pytest_asyncio.fixture(scope="module")
async def api(postgres: Postgres, temporal: str) -> AsyncIterator[Serving]:
    graphs = {"agent": agent(), "held": HELD.graph()}
    async with serving(postgres.clone(), temporal, graphs) as it:
        yield it


def test_all_routes_are_here(api: Serving) -> None:
    routes: set[str] = {route for route in api.app.state.routes if "/runs" in route}
    assert routes - OTHERS == set(ROUTES)


@pytest.mark.parametrize("route", ROUTES)
async def test_exact(api: Serving, route: str) -> None:
    thread = await api.thread()
    run = await _run_for(api, thread, route)
    method, path = route.replace("{thread_id}", thread).replace("{run_id}", run).split(" ")
    body: dict[str, Any] = {"assistant_id": "agent", "input": {"messages": []}}
    answered = await api.http.request(
        method,
        path,
        json=body if method == "POST" else None,
        params={"wait": 1},
        headers={"Last-Event-ID": "-1"},
    )
    assert answered.status_code in (200, 204), answered.text
    places = ROUTES[route]
    if places.content_location is None:
        assert not {"content-location", "location"} & answered.headers.keys()
        return
    ran = await _ran(api, thread, run, answered)
    expected = (places.content_location, places.location)
    found = (answered.headers["content-location"], answered.headers.get("location"))
    assert found == tuple(place and place.format(**ran) for place in expected)
    # What is there is this run.
    if places.location is not None and "cancel" not in route:
        again = await api.http.get(found[1] or "", headers={"Last-Event-ID": "-1"})
        assert (again.status_code, again.content) == (200, answered.content)


async def _run_for(api: Serving, thread: str, route: str) -> str:
    """Returns the run that a route is about: one that runs, has ended, or does not matter."""
    if "{run_id}" not in route:
        return fresh()
    if "/threads" not in route:
        created = await api.http.post("/runs", json={"assistant_id": "agent", "input": {"messages": []}})
        return str(created.json()["run_id"])
    if "cancel" not in route:
        await api.wait(thread, "agent", input={"messages": []})
        return str((await api.http.get(f"/threads/{thread}/runs")).json()[0]["run_id"])
    HELD.reset()
    run = await api.run(thread, "held", input={"trail": []})
    await HELD.started.wait()
    return run


async def _ran(api: Serving, thread: str, run: str, answered: httpx.Response) -> dict[str, str]:
    """Returns the ids of the run that was started or asked for, from elsewhere than the headers."""
    if answered.request.method == "GET" or "cancel" in str(answered.request.url):
        return {"thread": thread, "run": run}
    if answered.request.url.path.startswith("/threads"):
        return {"thread": thread, "run": (await api.http.get(f"/threads/{thread}/runs")).json()[0]["run_id"]}
    async with api.stack.pool.connection() as conn:
        found = await conn.execute(
            "SELECT thread_id, turn_id FROM turns.turn ORDER BY created_at DESC LIMIT 1"
        )
        row = await found.fetchone()
    assert row is not None
    return {"thread": str(row["thread_id"]), "run": str(row["turn_id"])}


async def test_a_run_that_does_not_exist(api: Serving) -> None:
    thread, run = await api.thread(), fresh()
    answered = await api.http.get(f"/threads/{thread}/runs/{run}/stream")
    assert (answered.headers["content-location"], answered.headers["location"]) == (
        f"/threads/{thread}/runs/{run}",
        f"/threads/{thread}/runs/{run}/stream",
    )
    assert b'"message":"404: Run not found"' in answered.content
    for refused in (
        await api.http.post(f"/threads/{thread}/runs/stream", json={"assistant_id": "nope"}),
        await api.http.get(f"/threads/{thread}/runs/{run}/join"),
        await api.http.post(f"/threads/{thread}/runs/{run}/cancel?wait=1"),
    ):
        assert refused.status_code in (404, 422)
        assert not {"content-location", "location"} & refused.headers.keys()
