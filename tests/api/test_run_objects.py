"""Runs as clients see them: their fields, the list, deleting."""

from __future__ import annotations

from tests.api.graphs import Held, steps
from tests.api.serving import Serving, fresh

HELD = Held()
GRAPHS = {"graph": steps("plan"), "held": HELD.graph()}


async def test_fields(api: Serving) -> None:
    thread = await api.thread()
    body = {
        "assistant_id": "graph",
        "input": {"trail": ["x"]},
        "metadata": {"a": 1},
        "config": {"configurable": {"foo": "bar"}, "tags": ["t1"], "recursion_limit": 30},
        "stream_mode": "updates",
    }
    answered = await api.http.post(f"/threads/{thread}/runs", json=body)
    run = answered.json()
    assert answered.headers["content-location"] == f"/threads/{thread}/runs/{run['run_id']}"
    assert "location" not in answered.headers
    assert run["status"] == "pending"
    ids = {"graph_id": "graph", "assistant_id": run["assistant_id"]}
    assert run["metadata"] == {"created_by": "system", **ids, "a": 1}
    kwargs = run["kwargs"]
    assert (kwargs["input"], kwargs["command"]) == (body["input"], None)
    assert (kwargs["stream_mode"], kwargs["subgraphs"], kwargs["temporary"]) == (
        ["updates"],
        False,
        False,
    )
    assert (kwargs["config"]["tags"], kwargs["config"]["recursion_limit"]) == (["t1"], 30)
    configurable = kwargs["config"]["configurable"]
    assert configurable == {
        "foo": "bar",
        "user_id": "",
        "run_id": run["run_id"],
        "thread_id": thread,
        **ids,
    }
    assert set(run) == {
        "run_id",
        "thread_id",
        "assistant_id",
        "metadata",
        "status",
        "kwargs",
        "multitask_strategy",
        "created_at",
        "updated_at",
        "langsmith_session_name",
    }
    await api.stack.ended(run["run_id"])
    done = (await api.http.get(f"/threads/{thread}/runs/{run['run_id']}")).json()
    assert done == {**run, "status": "success", "updated_at": done["updated_at"]}


async def test_list(api: Serving, held: Held) -> None:
    thread = await api.thread()
    runs = [await api.run(thread, "held", input={"trail": [str(n)]}) for n in range(3)]
    await held.started.wait()
    url = f"/threads/{thread}/runs"
    select = {"select": ["run_id", "status"]}
    listed = (await api.http.get(url, params=select)).json()
    assert [r["run_id"] for r in listed] == runs[::-1]
    assert [r["status"] for r in listed] == ["pending", "pending", "running"]
    assert set(listed[0]) == {"run_id", "status"}
    assert len((await api.http.get(url, params={"status": "pending"})).json()) == 2
    assert (await api.http.get(url, params={"status": "nonsense"})).json() == []
    page = (await api.http.get(url, params={"limit": 1, "offset": 1, **select})).json()
    assert [r["run_id"] for r in page] == runs[1:2]
    assert (await api.http.get(f"/threads/{fresh()}/runs")).status_code == 404
    held.go.set()
    await api.stack.ended(runs[-1])


async def test_delete(api: Serving, held: Held) -> None:
    thread = await api.thread()
    run = await api.run(thread, "held", input={"trail": ["x"]})
    await held.started.wait()
    assert (await api.http.delete(f"/threads/{thread}/runs/{run}")).status_code == 204
    assert held.stopped.is_set()
    gone = await api.http.get(f"/threads/{thread}/runs/{run}")
    assert (gone.status_code, gone.json()) == (404, {"detail": "Not Found"})
    again = await api.http.delete(f"/threads/{thread}/runs/{run}")
    assert (again.status_code, again.json()) == (404, {"detail": "Run not found"})
    held.go.set()
    assert (await api.wait(thread, "held", input={"trail": ["y"]}))["trail"] == ["x", "y", "hold", "after"]
