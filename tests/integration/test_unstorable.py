"""A result that cannot be stored fails its turn at once, with the reason, and leaves the thread usable."""

from __future__ import annotations

import threading
import uuid
from typing import Any

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from tests.servers import Postgres
from tests.stack import stack


class State(TypedDict, total=False):
    given: Any
    kept: Any


def graph(calls: list[str]) -> Any:
    odd = {"lock": threading.Lock(), "nul": "a\x00b", "fine": 1}

    async def node(state: State) -> Any:
        calls.append(str(state.get("given")))
        return {"kept": odd[str(state.get("given"))]}

    builder: Any = StateGraph(State)
    builder.add_node("node", node).add_edge(START, "node")
    return builder.compile()


async def test_the_turn_fails_once_and_the_thread_goes_on(postgres: Postgres, temporal: str) -> None:
    calls: list[str] = []
    async with stack(postgres.clone(), temporal, {"graph": graph(calls)}) as running:
        thread = str(uuid.uuid4())
        errors = {}
        for odd in ("lock", "nul"):
            row = await running.turn(thread=thread, input={"given": odd})
            assert row["status"] == "error"
            errors[odd] = row["error"]
        last = await running.turn(thread=thread, input={"given": "fine"})

    assert errors["lock"]["error"] == "TypeError"
    assert "serializable" in errors["lock"]["message"]
    assert errors["nul"]["error"] == "NotStorable"
    assert last["status"] == "success"
    assert calls == ["lock", "nul", "fine"]
