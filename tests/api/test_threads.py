"""Threads: their shape, their life, and their refusals."""

from __future__ import annotations

from typing import Any

from tests.api.graphs import Held, steps
from tests.api.serving import Serving, fresh

HELD = Held()
GRAPHS = {"graph": steps("plan"), "two": steps("plan", "finish"), "held": HELD.graph()}


async def test_create_get_patch_delete(api: Serving) -> None:
    created = (await api.http.post("/threads", json={"metadata": {"user": "u1"}, "foo": 1})).json()
    thread = created["thread_id"]
    assert created == {
        "thread_id": thread,
        "created_at": created["created_at"],
        "updated_at": created["created_at"],
        "state_updated_at": created["created_at"],
        "metadata": {"user": "u1"},
        "status": "idle",
        "config": {},
        "values": None,
    }
    assert created["created_at"].endswith("+00:00") and len(created["created_at"]) == 32
    assert (await api.http.get(f"/threads/{thread}")).json() == created
    assert (await api.http.get(f"/threads/{thread.upper()}")).json() == created
    patched = await api.http.patch(f"/threads/{thread}", json={"metadata": {"k": "v"}})
    assert patched.json()["metadata"] == {"user": "u1", "k": "v"}
    assert patched.json()["updated_at"] > created["updated_at"]
    minimal = await api.http.patch(
        f"/threads/{thread}", json={"metadata": {"k": 2}}, headers={"Prefer": "return=minimal"}
    )
    assert (minimal.status_code, minimal.content) == (204, b"")
    assert (await api.http.delete(f"/threads/{thread}")).status_code == 204
    gone = {"detail": f"Thread with ID {thread} not found"}
    for method in ("GET", "PATCH", "DELETE"):
        answered = await api.http.request(method, f"/threads/{thread}", content="{}")
        assert (answered.status_code, answered.json()) == (404, gone)


async def test_id_of_the_clients_own(api: Serving) -> None:
    thread = fresh()
    first = (await api.http.post("/threads", json={"thread_id": thread, "metadata": {"a": 1}})).json()
    again = await api.http.post("/threads", json={"thread_id": thread})
    assert again.status_code == 409
    assert again.json() == {"detail": f"Thread with ID {thread} already exists"}
    body = {"thread_id": thread, "if_exists": "do_nothing", "metadata": {"b": 2}}
    assert (await api.http.post("/threads", json=body)).json() == first


async def test_after_a_run(api: Serving) -> None:
    thread = await api.thread()
    config = {"configurable": {"lang": "en"}, "tags": ["t1"], "recursion_limit": 30}
    await api.wait(thread, input={"trail": ["x"]}, config=config, metadata={"only": "the run's"})
    shown = (await api.http.get(f"/threads/{thread}")).json()
    assistant = (await api.http.get("/assistants/graph")).json()["assistant_id"]
    assert shown["metadata"] == {"graph_id": "graph", "assistant_id": assistant}
    assert shown["config"] == config
    assert shown["values"] == {"trail": ["x", "plan"]}
    assert (shown["error"], shown["interrupts"], shown["status"]) == (None, {}, "idle")


async def test_run_makes_its_thread(api: Serving) -> None:
    thread = fresh()
    values = await api.wait(thread, input={"trail": ["x"]}, if_not_exists="create", metadata={"user": "u1"})
    assert values == {"trail": ["x", "plan"]}
    assert (await api.http.get(f"/threads/{thread}")).json()["metadata"]["user"] == "u1"


async def test_delete_while_running(api: Serving, held: Held) -> None:
    thread = await api.thread()
    run = await api.run(thread, "held", input={"trail": []})
    await held.started.wait()
    assert (await api.http.delete(f"/threads/{thread}")).status_code == 204
    assert (await api.http.get(f"/threads/{thread}")).status_code == 404
    assert (await api.http.get(f"/threads/{thread}/runs/{run}")).status_code == 404
    await held.stopped.wait()


async def test_supersteps(api: Serving) -> None:
    body = {
        "metadata": {"graph_id": "two"},
        "supersteps": [
            {"updates": [{"values": {"trail": ["seed"]}, "as_node": "__start__"}]},
            {"updates": [{"values": {"trail": ["plan"]}, "as_node": "plan"}]},
        ],
    }
    made = (await api.http.post("/threads", json=body)).json()
    assert (made["status"], made["values"]) == ("interrupted", {"trail": ["seed", "plan"]})
    assert await api.wait(made["thread_id"], "two", input=None) == {"trail": ["seed", "plan", "finish"]}


async def test_supersteps_with_a_command(api: Serving) -> None:
    command = {"update": {"trail": ["seed"]}, "goto": ["finish"]}
    supersteps: Any = [{"updates": [{"values": None, "command": command, "as_node": "__start__"}]}]
    made = await api.sdk.threads.create(graph_id="two", supersteps=supersteps)
    assert (made["status"], made["values"]) == ("interrupted", {"trail": ["seed"]})
    state = await api.sdk.threads.get_state(made["thread_id"])
    assert set(state["next"]) == {"plan", "finish"}
    bad = {"supersteps": [{"updates": [{"command": {"goto": {"input": 1}}}]}]}
    assert (await api.http.post("/threads", json=bad)).status_code == 422
