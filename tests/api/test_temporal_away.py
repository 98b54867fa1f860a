"""Without Temporal a run is accepted and stays pending; what needs Temporal at once says so."""

from __future__ import annotations

import httpx
from temporalio.client import Client

from api.app import build_app
from tests.api.graphs import steps
from tests.api.serving import Serving, serving, uvicorn_serving
from tests.servers import free_port


async def test_accepts_and_says_so(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"graph": steps("a")}) as api:
        nobody = await Client.connect(f"127.0.0.1:{free_port()}", lazy=True)
        app = build_app(api.stack.settings, api.stack.project, client=nobody)
        async with uvicorn_serving(app, free_port()) as url, httpx.AsyncClient(base_url=url) as http:
            away = Serving(api.stack, app, url, http)
            thread = await away.thread()
            run = await away.run(thread, input={"trail": ["x"]})
            assert await away.status(thread, run) == "pending"
            answered = await http.get(f"/threads/{thread}/progress")
            assert answered.status_code == 503 and "Temporal" in answered.json()["detail"]
        # Any later turn of the thread brings the forgotten one along, in order.
        assert await api.wait(thread, input={"trail": ["y"]}) == {"trail": ["x", "a", "y", "a"]}
