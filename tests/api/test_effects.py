"""The journal of a thread's effects over HTTP."""

from __future__ import annotations

from typing import Any

from langgraph.graph import START, StateGraph

from adapter.effects import effect
from tests.api.graphs import State
from tests.api.serving import fresh, serving


def _graph() -> Any:
    async def charge(*, idempotency_key: str) -> str:
        return "charged"

    async def pay(state: State) -> Any:
        return {"answer": await effect("charge", charge)}

    builder = StateGraph(State)
    builder.add_node("pay", pay)
    builder.add_edge(START, "pay")
    return builder.compile()


async def test_journal(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"graph": _graph()}) as api:
        thread = await api.thread()
        assert (await api.http.get(f"/threads/{thread}/effects")).json() == []
        await api.wait(thread, input={"trail": []})
        run = (await api.http.get(f"/threads/{thread}/runs")).json()[0]["run_id"]
        (journal,) = (await api.http.get(f"/threads/{thread}/effects")).json()
        assert journal == {
            "key": journal["key"],
            "thread_id": thread,
            "run_id": run,
            "name": "charge",
            "node": "pay",
            "mode": "keyed",
            "state": "finished",
            "attempts": 1,
            "compensations": 0,
            "error": None,
            "unsettled": None,
            "started_at": journal["started_at"],
            "updated_at": journal["updated_at"],
        }
        assert (await api.http.get(f"/threads/{fresh()}/effects")).status_code == 404
