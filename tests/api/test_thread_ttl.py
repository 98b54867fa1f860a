"""A thread's lifetime: given when it is made or later, shown on request, counted from its last change."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tests.api.graphs import steps
from tests.api.serving import Serving, fresh

GRAPHS = {"graph": steps("plan")}


async def _shown(api: Serving, thread: str) -> dict[str, Any] | None:
    answered = (await api.http.get(f"/threads/{thread}", params={"include": "ttl"})).json()
    shown = answered.get("ttl")
    if shown is not None:
        left = datetime.fromisoformat(shown.pop("expires_at")) - datetime.fromisoformat(
            answered["updated_at"]
        )
        assert left == timedelta(minutes=shown["ttl_minutes"])
    return shown


async def test_given_and_shown(api: Serving) -> None:
    threads = api.sdk.threads
    by_number = await threads.create(ttl=60)
    assert "ttl" not in by_number
    thread = by_number["thread_id"]
    assert await _shown(api, thread) == {"strategy": "delete", "ttl_minutes": 60}
    assert "ttl" not in (await threads.get(thread))
    with_ttl: Any = await threads.get(thread, include=["ttl"])
    assert with_ttl["ttl"]["ttl_minutes"] == 60
    await threads.update(thread, metadata={"a": 1})
    assert await _shown(api, thread) == {"strategy": "delete", "ttl_minutes": 60}
    await threads.update(thread, metadata={}, ttl={"ttl": 1.5, "strategy": "keep_latest"})
    assert await _shown(api, thread) == {"strategy": "keep_latest", "ttl_minutes": 1.5}
    body = {"thread_id": thread, "if_exists": "do_nothing", "ttl": 5}
    assert (await api.http.post("/threads", json=body)).status_code == 200
    assert await _shown(api, thread) == {"strategy": "keep_latest", "ttl_minutes": 1.5}
    bare = await api.http.post("/threads", json={"ttl": 7})
    assert await _shown(api, bare.json()["thread_id"]) == {"strategy": "delete", "ttl_minutes": 7}
    assert await _shown(api, (await threads.create())["thread_id"]) is None


async def test_refusals(api: Serving) -> None:
    thread = await api.thread()
    for ttl in (0, -1, "soon", True, {"strategy": "delete"}, {"ttl": 1, "strategy": "nope"}, 1e300):
        for method, path in (("POST", "/threads"), ("PATCH", f"/threads/{thread}")):
            answered = await api.http.request(method, path, json={"ttl": ttl})
            assert answered.status_code == 422, answered.text
            assert answered.json()["detail"].startswith("ttl"), answered.text
    missing = await api.http.patch(f"/threads/{fresh()}", json={"ttl": 1})
    assert missing.status_code == 404
