"""Two users: whatever one of them tries on what is the other's, on every route, finds nothing and changes nothing.

A route that is not in the table below fails the first test: say there what is tried on it.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, cast

import httpx
import psycopg
import pytest

from api.access import PUBLIC, RULES
from tests.api.graphs import Held, asking, failing
from tests.api.serving import Serving, fresh, in_front_of
from tests.stack import stack

pytestmark = pytest.mark.slow

SECRET = "what alice said"
KEYS = "alice:alice,mallory:mallory"


@dataclass(frozen=True)
class Theirs:
    """What is alice's, as (thread, run).

    Attributes:
        waiting: for an answer.
        busy: its run is under way.
        failed: abandoned.
        stateless: of a run whose thread its client does not know.
        checkpoint: of the waiting thread.
        assistant: one that she made.
    """

    waiting: tuple[str, str]
    busy: tuple[str, str]
    failed: tuple[str, str]
    stateless: tuple[str, str]
    checkpoint: str
    assistant: str

    def all(self) -> list[tuple[str, str]]:
        return [self.waiting, self.busy, self.failed, self.stateless]


@dataclass(frozen=True)
class Attempt:
    """What is tried on a route.

    Attributes:
        body: sent as JSON, made with alice's things.
        finds: the status, and what the body must be, when mallory tries; None is anything without a trace of alice.
        on_common: the same, on an assistant that is everybody's.
    """

    body: Any = None
    query: str = ""
    finds: tuple[int, Any] = (404, None)
    on_common: tuple[int, Any] = (404, None)


def attempts(theirs: Theirs, *, keys: bool) -> dict[str, Attempt]:
    """Returns what is tried, by route.

    With keys, assistants of graphs are everybody's, and namespaces of others are refused; else nobody sees them.
    """
    run: dict[str, Any] = {"assistant_id": "graph", "input": {"trail": ["mine"]}}
    elsewhere: dict[str, Any] = {
        **run,
        "if_not_exists": "create",
        "config": {"configurable": {"thread_id": theirs.waiting[0], "checkpoint_id": theirs.checkpoint}},
    }
    one = (200, None) if keys else (404, None)
    item: dict[str, Any] = {"namespace": ["alice", "notes"], "key": "k"}
    every = [thread for thread, _ in theirs.all()]
    return {
        "POST /threads": Attempt(
            {"thread_id": theirs.waiting[0], "if_exists": "do_nothing"}, finds=(409, None)
        ),
        "POST /threads/search": Attempt({"ids": every}, finds=(200, [])),
        "POST /threads/prune": Attempt({"thread_ids": every}, finds=(200, {"pruned_count": 0})),
        "POST /threads/{thread_id}/copy": Attempt(),
        "POST /threads/count": Attempt({"metadata": {"owner": "alice"}}, finds=(200, 0)),
        "GET /threads/abandoned": Attempt(finds=(200, [])),
        "GET /threads/{thread_id}": Attempt(),
        "PATCH /threads/{thread_id}": Attempt({"metadata": {"owner": "mallory", "x": 1}}),
        "DELETE /threads/{thread_id}": Attempt(),
        "GET /threads/{thread_id}/effects": Attempt(),
        "GET /threads/{thread_id}/progress": Attempt(),
        "GET /threads/{thread_id}/progress/stream": Attempt(),
        "GET /threads/{thread_id}/state": Attempt(query="?subgraphs=true"),
        "GET /threads/{thread_id}/state/{checkpoint_id}": Attempt(),
        "POST /threads/{thread_id}/state/checkpoint": Attempt({"checkpoint": {}}),
        "POST /threads/{thread_id}/state": Attempt({"values": {"trail": ["mine"]}, "as_node": "plan"}),
        "GET /threads/{thread_id}/history": Attempt(),
        "POST /threads/{thread_id}/history": Attempt({"limit": 10}),
        "POST /threads/{thread_id}/runs": Attempt(run),
        "POST /threads/{thread_id}/runs/stream": Attempt({**run, "if_not_exists": "create"}),
        "POST /threads/{thread_id}/runs/wait": Attempt({**run, "multitask_strategy": "rollback"}),
        "GET /threads/{thread_id}/runs": Attempt(),
        "GET /threads/{thread_id}/runs/{run_id}": Attempt(),
        "DELETE /threads/{thread_id}/runs/{run_id}": Attempt(),
        "GET /threads/{thread_id}/runs/{run_id}/join": Attempt(query="?cancel_on_disconnect=true"),
        "GET /threads/{thread_id}/runs/{run_id}/stream": Attempt(query="?cancel_on_disconnect=true"),
        "POST /threads/{thread_id}/runs/{run_id}/cancel": Attempt(query="?action=rollback&wait=1"),
        # Runs of their own, which start from a checkpoint of hers as little as from any other that is not there.
        "POST /runs": Attempt(elsewhere, finds=(200, None)),
        "POST /runs/stream": Attempt(elsewhere, finds=(200, None)),
        "POST /runs/wait": Attempt(elsewhere, finds=(200, None)),
        "POST /runs/batch": Attempt([elsewhere], finds=(200, None)),
        "POST /runs/cancel": Attempt({"thread_id": theirs.busy[0], "run_ids": [theirs.busy[1]]}),
        "GET /runs/{run_id}/stream": Attempt(),
        "POST /assistants": Attempt(
            {"assistant_id": theirs.assistant, "graph_id": "graph", "if_exists": "do_nothing"},
            finds=(409, None),
        ),
        "POST /assistants/search": Attempt({"name": "private"}, finds=(200, [])),
        "POST /assistants/count": Attempt({"metadata": {"owner": "alice"}}, finds=(200, 0)),
        "PATCH /assistants/{assistant_id}": Attempt({"metadata": {"owner": "mallory"}, "name": "mine"}),
        "DELETE /assistants/{assistant_id}": Attempt(query="?delete_threads=true"),
        "POST /assistants/{assistant_id}/versions": Attempt({}, on_common=one),
        "POST /assistants/{assistant_id}/latest": Attempt({"version": 1}),
        "PUT /store/items": Attempt({**item, "value": {}}, finds=(403 if keys else 204, None)),
        "GET /store/items": Attempt(
            query="?namespace=alice.notes&key=k",
            finds=(403, None) if keys else (200, None),
        ),
        "DELETE /store/items": Attempt(item, finds=(403 if keys else 204, None)),
        "POST /store/items/search": Attempt(
            {"namespace_prefix": ["alice"]}, finds=(403, None) if keys else (200, {"items": []})
        ),
        "POST /store/namespaces": Attempt(
            {"prefix": ["alice"]}, finds=(403, None) if keys else (200, {"namespaces": []})
        ),
        "GET /assistants/{assistant_id}": Attempt(on_common=one),
        "GET /assistants/{assistant_id}/graph": Attempt(on_common=one),
        "GET /assistants/{assistant_id}/schemas": Attempt(on_common=one),
        "GET /assistants/{assistant_id}/subgraphs": Attempt(on_common=one),
        "GET /assistants/{assistant_id}/subgraphs/{namespace}": Attempt(on_common=one),
    }


@pytest.fixture(params=["keys", "auth.path"])
async def api(request: Any, database_url: str, temporal: str) -> AsyncGenerator[Serving]:
    held = Held()
    graphs = {"graph": asking(), "held": held.graph(), "failing": failing()}
    async with stack(database_url, temporal, graphs, sse_heartbeat=0.3) as behind:
        if request.param == "auth.path":
            behind.project.auth_target = "tests.api.authenticated:auth"
        keys = KEYS if request.param == "keys" else ""
        async with in_front_of(behind, api_keys=keys) as served:
            yield served
            held.go.set()


@contextlib.asynccontextmanager
async def user(api: Serving, name: str) -> AsyncGenerator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=api.url, headers={"x-api-key": name}, timeout=20) as client:
        yield client


async def alices(alice: httpx.AsyncClient) -> Theirs:
    thread, busy, failed = [(await alice.post("/threads", json={})).json()["thread_id"] for _ in range(3)]
    body = {"assistant_id": "graph", "input": {"trail": [SECRET]}}
    asked = await alice.post(f"/threads/{thread}/runs/wait", json=body)
    assert "__interrupt__" in asked.json()
    run = asked.headers["content-location"].rsplit("/", 1)[1]
    state = (await alice.get(f"/threads/{thread}/state")).json()
    begun = {"assistant_id": "held", "input": {"trail": [SECRET]}, "stream_mode": "custom"}
    async with alice.stream("POST", f"/threads/{busy}/runs/stream", json=begun) as stream:
        async for line in stream.aiter_lines():
            if "started" in line:
                break
        running = stream.headers["content-location"].rsplit("/", 1)[1]
    broken = await alice.post(f"/threads/{failed}/runs/wait", json={**body, "assistant_id": "failing"})
    assert "__error__" in broken.json()
    alone = await alice.post("/runs/wait", json={**body, "on_completion": "keep"})
    _, _, stateless, _, its_run, _ = alone.headers["location"].split("/")
    configured = {"graph_id": "graph", "name": "private", "config": {"configurable": {"prompt": SECRET}}}
    assistant = (await alice.post("/assistants", json=configured)).json()["assistant_id"]
    item = {"namespace": ["alice", "notes"], "key": "k", "value": {"text": SECRET}}
    assert (await alice.put("/store/items", json=item)).status_code == 204
    return Theirs(
        (thread, run),
        (busy, running),
        (failed, broken.headers["content-location"].rsplit("/", 1)[1]),
        (stateless, its_run),
        state["checkpoint"]["checkpoint_id"],
        assistant,
    )


def with_keys(api: Serving) -> bool:
    return bool(api.app.state.settings.api_keys)


def path_of(route: str, thread: str, run: str, theirs: Theirs, assistant: str) -> tuple[str, str]:
    method, path = route.split(" ")
    named = {"thread_id": thread, "run_id": run, "checkpoint_id": theirs.checkpoint}
    return method, path.format(**named, assistant_id=assistant, namespace="x")


def everything(database_url: str, theirs: Theirs) -> dict[str, Any]:
    """Returns every row of alice's threads, in all tables that have any."""
    held: dict[str, Any] = {}
    with psycopg.connect(database_url) as conn:
        for table in ("turns.thread", "turns.turn", "turns.effect", "checkpoints", "checkpoint_writes"):
            rows = conn.execute(
                f"SELECT * FROM {table} t WHERE thread_id::text = ANY (%s) ORDER BY t::text",  # type: ignore[arg-type]
                ([thread for thread, _ in theirs.all()],),
            )
            held[table] = rows.fetchall()
        events = 'SELECT * FROM turns.event WHERE turn_id::text = ANY (%s) ORDER BY turn_id, "offset"'
        held["turns.event"] = conn.execute(events, ([run for _, run in theirs.all()],)).fetchall()
        for table in ("turns.assistant", "turns.assistant_version"):
            rows = conn.execute(
                f"SELECT * FROM {table} WHERE assistant_id = %s",  # type: ignore[arg-type]
                (theirs.assistant,),
            )
            held[table] = rows.fetchall()
        held["store"] = conn.execute("SELECT * FROM store WHERE prefix LIKE 'alice.%'").fetchall()
    return held


async def test_nothing_of_the_other(api: Serving, database_url: str) -> None:
    async with user(api, "alice") as alice, user(api, "mallory") as mallory:
        theirs = await alices(alice)
        tried = attempts(theirs, keys=with_keys(api))
        routes = [route for route in api.app.state.routes if RULES[route] is not PUBLIC]
        assert sorted(tried) == sorted(routes)
        before = everything(database_url, theirs)
        assert all(rows for table, rows in before.items() if table != "turns.effect")
        for route in routes:
            attempt = tried[route]
            for thread, run in theirs.all():
                for assistant in (theirs.assistant, "graph"):
                    method, path = path_of(route, thread, run, theirs, assistant)
                    answered = await mallory.request(method, path + attempt.query, json=attempt.body)
                    common = "{assistant_id}" in route and assistant == "graph"
                    status, body = attempt.on_common if common else attempt.finds
                    assert answered.status_code == status, (route, answered.status_code, answered.text)
                    assert body is None or answered.json() == body, (route, answered.text)
                    assert SECRET not in answered.text, (route, answered.text)
        assert everything(database_url, theirs) == before


async def test_other_run_on_own_thread(api: Serving, database_url: str) -> None:
    async with user(api, "alice") as alice, user(api, "mallory") as mallory:
        theirs = await alices(alice)
        tried = attempts(theirs, keys=with_keys(api))
        before = everything(database_url, theirs)
        own = (await mallory.post("/threads", json={})).json()["thread_id"]
        for route in (route for route in tried if "{run_id}" in route):
            for _, run in theirs.all():
                method, path = path_of(route, own, run, theirs, "graph")
                answered = await mallory.request(method, path + tried[route].query)
                assert answered.status_code == 404 or '"message":"404: Run not found"' in answered.text, route
                assert SECRET not in answered.text
        state = await mallory.get(f"/threads/{own}/state/{theirs.checkpoint}")
        assert SECRET not in state.text
        assert everything(database_url, theirs) == before


async def test_the_owner_may(api: Serving) -> None:
    """The attempts fail because of who tries them: the owner's succeed."""
    async with user(api, "alice") as alice:
        theirs = await alices(alice)
        tried = attempts(theirs, keys=with_keys(api))
        assert [t["thread_id"] for t in (await alice.get("/threads/abandoned")).json()] == [theirs.failed[0]]
        # What deletes comes last, the thread at the very end.
        for route in sorted(tried, key=lambda r: (r.startswith("DELETE") or "prune" in r, -len(r))):
            if route == "POST /runs/cancel":
                continue  # the run is cancelled by then; see test_several_runs.py
            thread, run = theirs.waiting
            if route.endswith("/cancel"):
                thread, run = theirs.busy
            if route == "GET /runs/{run_id}/stream":
                thread, run = theirs.stateless
            method, path = path_of(route, thread, run, theirs, theirs.assistant)
            body = {"metadata": {"x": 1}} if method == "PATCH" else tried[route].body
            if route.startswith("POST /runs") and not with_keys(api):
                # One of one's own serves as well.
                body = _as(theirs.assistant, body)
            query = tried[route].query.replace("rollback&wait=1", "interrupt")
            async with alice.stream(method, path + query, json=body) as answered:
                # A thread that is busy, or exists, is a conflict; it is found all the same.
                assert answered.status_code in (200, 202, 204, 409), (route, answered.status_code)
                if route in ("GET /store/items", "POST /store/items/search", "POST /store/namespaces"):
                    await answered.aread()
                    assert "notes" in answered.text, (route, answered.text)


def _as(assistant: str, body: Any) -> Any:
    if isinstance(body, list):
        return [_as(assistant, one) for one in cast("list[Any]", body)]
    return {**body, "assistant_id": assistant}


async def test_nobody(api: Serving) -> None:
    nothing = (fresh(), fresh())
    theirs = Theirs(nothing, nothing, nothing, nothing, fresh(), fresh())
    origin = {"origin": "http://localhost:3000"}
    for route in api.app.state.routes:
        method, path = path_of(route, *theirs.waiting, theirs, "graph")
        for headers in (origin, {**origin, "x-api-key": "nobody"}, {**origin, "authorization": "Bearer no"}):
            answered = await api.http.request(method, path, headers=headers, content=b"not JSON")
            if RULES[route] is PUBLIC:
                assert answered.status_code == 200, route
                continue
            assert answered.status_code == 401, (route, answered.text)
            assert answered.json()["detail"] in ("Unauthorized", "bad key")
            assert answered.headers["access-control-allow-origin"] == "*"
    for path in ("/docs", "/openapi.json"):
        assert (await api.http.get(path)).status_code == 200
    asked = {**origin, "access-control-request-method": "POST", "access-control-request-headers": "x-api-key"}
    assert (await api.http.options("/threads", headers=asked)).status_code == 200
