"""The server about itself: /ok, /info, the three parts of its health, CORS, the OpenAPI document."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any

from temporalio.client import Client

from api import routers
from api.access import gate
from api.answers import ANSWERS
from api.app import build_app
from api.deps import refuse_nul
from tests.api.graphs import steps
from tests.api.serving import serving, uvicorn_serving
from tests.servers import free_port

ORIGIN = {"origin": "http://localhost:3000"}


async def test_ok_and_info(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"graph": steps("a")}) as api:
        for path in ("/ok", "/", "/ok?check_db=1"):
            assert (await api.http.get(path)).json() == {"ok": True, "services": {}}
            assert (await api.http.head(path)).status_code == 200
        info = (await api.http.get("/info", headers={"X-Api-Key": "any"})).json()
        assert info["flags"]["assistants"] is True and info["version"] and info["langgraph_py_version"]
        document = (await api.http.get("/openapi.json")).json()
        operation = document["paths"]["/threads/{thread_id}/runs/stream"]["post"]
        body = operation["requestBody"]["content"]
        assert body["application/json"]["schema"]["$ref"] == "#/components/schemas/RunCreate"
        assert list(operation["responses"]["200"]["content"]) == ["text/event-stream"]
        assert set(operation["responses"]) == set("200 400 401 403 404 409 413 422 429 503".split())
        assert set(ANSWERS) == set(api.app.state.routes)


def test_nothing_that_a_request_passes_needs_a_thread() -> None:
    """FastAPI calls what is not `async` in a thread, which costs more than most requests."""
    calls: list[Any] = [refuse_nul, gate]
    for module in pkgutil.iter_modules(routers.__path__):
        router = importlib.import_module(f"{routers.__name__}.{module.name}").router
        left = [route.dependant for route in router.routes]
        while left:
            one = left.pop()
            calls.append(one.call)
            left.extend(one.dependencies)
    assert len(calls) > 100
    for call in calls:
        assert any(map(inspect.iscoroutinefunction, (call, type(call).__call__))), call


async def test_health(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"graph": steps("a")}) as api:
        for part in ("started", "ready", "live"):
            assert (await api.http.get(f"/health/{part}")).status_code == 200
        nobody = await Client.connect(f"127.0.0.1:{free_port()}", lazy=True)
        app = build_app(api.stack.settings, api.stack.project, client=nobody)
        async with uvicorn_serving(app, free_port()) as url:
            assert (await api.http.get(f"{url}/health/live")).status_code == 200
            ready = await api.http.get(f"{url}/health/ready")
            assert (ready.status_code, ready.json()) == (503, {"detail": "Temporal is not reachable."})
        await api.app.state.parts.pool.close()
        ready = await api.http.get("/health/ready")
        assert (ready.status_code, ready.json()) == (503, {"detail": "The database is not reachable."})
        assert (await api.http.get("/ok")).status_code == 200
        lost = await api.http.post("/threads", json={})
        assert (lost.status_code, lost.json()) == (
            503,
            {"detail": "The database is not reachable. Try again."},
        )


async def test_cors(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"graph": steps("a")}) as api:
        preflight = await api.http.options(
            "/threads",
            headers={
                **ORIGIN,
                "access-control-request-method": "POST",
                "access-control-request-headers": "content-type,x-api-key,last-event-id",
            },
        )
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == "*"
        assert preflight.headers["access-control-allow-headers"] == "content-type,x-api-key,last-event-id"
        assert preflight.headers["access-control-max-age"] == "600"
        assert set(preflight.headers["access-control-allow-methods"].split(", ")) >= {"PATCH", "DELETE"}
        answered = await api.http.get("/info", headers=ORIGIN)
        assert answered.headers["access-control-allow-origin"] == "*"
        exposed = set(answered.headers["access-control-expose-headers"].split(", "))
        assert exposed >= {"content-location", "location", "x-pagination-total", "x-pagination-next"}
        missing = await api.http.get("/nope", headers=ORIGIN)
        assert missing.headers["access-control-allow-origin"] == "*"


async def test_chosen_origins(database_url: str, temporal: str) -> None:
    origins = "http://localhost:3000, https://example.org"
    async with serving(database_url, temporal, {"graph": steps("a")}, cors_origins=origins) as api:
        ours = await api.http.get("/ok", headers=ORIGIN)
        assert ours.headers["access-control-allow-origin"] == ORIGIN["origin"]
        theirs = await api.http.get("/ok", headers={"origin": "https://evil.example"})
        assert "access-control-allow-origin" not in theirs.headers
