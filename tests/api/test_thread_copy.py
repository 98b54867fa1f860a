"""A copied thread has the original's state, history and questions, and goes its own way."""

from __future__ import annotations

from typing import Any

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from psycopg.rows import DictRow

from adapter.effects import effect, idempotency_key
from adapter.store.pool import Pool, fetch_all
from tests.api.graphs import Held, State, asking, failing, nested, steps
from tests.api.serving import Serving, fresh, serving

GRAPHS = {
    "graph": steps("plan", "finish"),
    "asking": asking(),
    "nested": nested(),
    "failing": failing(),
}
TABLES = {
    "checkpoints": "checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata",
    "checkpoint_blobs": "checkpoint_ns, channel, version, type, blob",
    "checkpoint_writes": "checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob, task_path",
}


async def _rows(pool: Pool, thread: str) -> dict[str, list[DictRow]]:
    found: dict[str, list[DictRow]] = {}
    async with pool.connection() as conn:
        for table, columns in TABLES.items():
            statement: Any = f"SELECT {columns} FROM {table} WHERE thread_id = %s ORDER BY 1, 2, 3, 4"
            found[table] = await (await conn.execute(statement, (thread,))).fetchall()
    return found


async def _copy(api: Serving, thread: str) -> dict[str, Any]:
    answered = await api.http.post(f"/threads/{thread}/copy")
    assert answered.status_code == 200, answered.text
    return answered.json()


async def test_state_and_history(api: Serving) -> None:
    thread = await api.thread(metadata={"user": "u1"})
    await api.wait(thread, input={"trail": ["x"]}, config={"tags": ["t"]})
    original: Any = await api.sdk.threads.get(thread)
    copied = await _copy(api, thread)
    own = copied["thread_id"]
    kept = ("metadata", "status", "config", "values", "error", "interrupts")
    assert own != thread and {key: copied[key] for key in kept} == {key: original[key] for key in kept}
    assert copied["created_at"] > original["created_at"]
    assert await api.sdk.threads.get(own) == copied
    assert await _rows(api.stack.pool, own) == await _rows(api.stack.pool, thread)

    histories: list[Any] = [await api.sdk.threads.get_history(one) for one in (thread, own)]
    assert len(histories[1]) == 4
    for before, after in zip(*histories, strict=True):
        assert after["checkpoint"]["thread_id"] == own
        assert (after["values"], after["next"]) == (before["values"], before["next"])
        assert after["checkpoint_id"] == before["checkpoint_id"]
    assert await api.sdk.runs.list(own) == []

    assert await api.wait(own, input={"trail": ["y"]}) == {
        "trail": ["x", "plan", "finish", "y", "plan", "finish"]
    }
    assert (await api.sdk.threads.get(thread))["values"] == original["values"]
    await api.sdk.threads.delete(thread)
    assert len(await api.sdk.threads.get_history(own)) == 8


async def test_fresh_thread(api: Serving) -> None:
    copied = await _copy(api, await api.thread(metadata={"a": 1}))
    shown = (copied["metadata"], copied["status"], copied["values"])
    assert shown == ({"a": 1}, "idle", None) and "interrupts" not in copied
    assert copied["state_updated_at"] == copied["created_at"]


async def test_questions(api: Serving) -> None:
    for graph, answered in (("asking", ["plan", "ask", "finish"]), ("nested", ["inner", "finish"])):
        thread = await api.thread()
        await api.wait(thread, graph, input={"trail": []})
        own = await _copy(api, thread)
        assert own["status"] == "interrupted"
        assert own["interrupts"] == (await api.sdk.threads.get(thread))["interrupts"] != {}
        for one, answer in ((own["thread_id"], "copy"), (thread, "original")):
            values = await api.wait(one, graph, command={"resume": answer})
            assert (values["trail"], values["answer"]) == (answered, answer)


async def test_after_an_error(api: Serving) -> None:
    thread = await api.thread()
    await api.wait(thread, "failing", input={"trail": ["x"]})
    own = await _copy(api, thread)
    assert (own["status"], own["error"]) == ("error", {"error": "ValueError", "message": "boom in plan"})
    await api.sdk.threads.update_state(own["thread_id"], {"answer": "yes"}, as_node="__start__")
    assert (await api.wait(own["thread_id"], "failing", input=None))["trail"] == ["x", "plan"]


async def test_of_a_busy_thread(database_url: str, temporal: str) -> None:
    held = Held()
    async with serving(database_url, temporal, {"graph": steps("plan"), "held": held.graph()}) as api:
        thread = await api.thread()
        await api.wait(thread, input={"trail": ["x"]})
        await api.run(thread, "held", input={"trail": ["y"]})
        await held.started.wait()
        own = await _copy(api, thread)
        assert (own["status"], own["values"]) == ("idle", {"trail": ["x", "plan", "y"]})
        held.go.set()
        assert (await api.wait(own["thread_id"], "held", input=None))["trail"] == [
            "x",
            "plan",
            "y",
            "hold",
            "after",
        ]


async def test_effects_of_the_copy_have_keys_of_their_own(database_url: str, temporal: str) -> None:
    async def pay(state: State) -> Any:
        async def charge(idempotency_key: str) -> str:
            return idempotency_key

        receipt = await effect("charge", charge)
        assert receipt == idempotency_key("charge")
        return {"answer": interrupt(receipt)}

    builder = StateGraph(State)
    builder.add_node("pay", pay)
    builder.add_edge(START, "pay")
    async with serving(database_url, temporal, {"graph": builder.compile()}) as api:
        thread = await api.thread()
        await api.wait(thread, input={"trail": []})
        own = (await _copy(api, thread))["thread_id"]
        assert await fetch_all(api.stack.pool, "list_effects", thread_id=own, unsettled=False, limit=9) == []
        await api.wait(own, command={"resume": "yes"})
        keys = [
            [row["key"] for row in (await api.http.get(f"/threads/{one}/effects")).json()]
            for one in (thread, own)
        ]
        assert [len(of) for of in keys] == [1, 1] and keys[0] != keys[1]


async def test_of_a_stateless_run(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"graph": steps("plan")}) as api:
        answered = await api.http.post("/runs", json={"assistant_id": "graph", "input": {"trail": []}})
        thread = answered.json()["thread_id"]
        await api.http.get(f"/threads/{thread}/runs/{answered.json()['run_id']}/join")
        own = (await _copy(api, thread))["thread_id"]
        assert [t["thread_id"] for t in await api.sdk.threads.search()] == [own]


async def test_refusals(api: Serving) -> None:
    unknown = fresh()
    missing = await api.http.post(f"/threads/{unknown}/copy")
    assert (missing.status_code, missing.json()) == (
        409,
        {"detail": f"Thread with ID {unknown} not found"},
    )
    assert (await api.http.post("/threads/nope/copy")).status_code == 422
