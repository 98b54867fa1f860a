"""A branch of a fan-out does not start what runs in other branches; the superstep that they share stays open (I6)."""

from __future__ import annotations

import operator
import uuid
from collections import Counter
from typing import Annotated, Any

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy, Send
from typing_extensions import TypedDict

from adapter._pregel import TaskFacts
from adapter.gate import Gate
from tests.servers import Postgres
from tests.stack import stack

WIDE = 8


class State(TypedDict, total=False):
    number: int
    found: Annotated[list[int], operator.add]
    joined: int


def _fan_out(fails: frozenset[int] = frozenset()) -> Any:
    tried = Counter[int]()

    async def look(state: State) -> Any:
        number = state.get("number", -1)
        tried[number] += 1
        if number in fails and tried[number] == 1:
            raise ConnectionError("once")
        return {"found": [number]}

    def split(_: State) -> list[Send]:
        return [Send("look", {"number": number}) for number in range(WIDE)]

    async def join(state: State) -> Any:
        return {"joined": len(state.get("found", []))}

    builder: Any = StateGraph(State)
    builder.add_node("look", look, retry_policy=RetryPolicy(initial_interval=0.01, max_attempts=3))
    builder.add_node("join", join)
    builder.add_conditional_edges(START, split, ["look"])
    builder.add_edge("look", "join")
    builder.add_edge("join", END)
    return builder.compile()


@pytest.mark.parametrize("fails", [frozenset[int](), frozenset({3}), frozenset({0, WIDE - 1})], ids=sorted)
async def test_every_branch_is_run_once(
    postgres: Postgres, temporal: str, monkeypatch: pytest.MonkeyPatch, fails: frozenset[int]
) -> None:
    started = list[str]()
    admit = Gate.admit

    def counts(self: Gate, task: TaskFacts) -> None:
        started.append(task.node)
        admit(self, task)

    monkeypatch.setattr(Gate, "admit", counts)
    async with stack(postgres.clone(), temporal, {"graph": _fan_out(fails)}) as running:
        thread = str(uuid.uuid4())
        row = await running.turn(thread=thread, input={"found": []})
        assert row["status"] == "success", row["error"]
        values = (await running.state("graph", thread)).values

    assert sorted(values["found"]) == list(range(WIDE))
    assert values["joined"] == WIDE
    if not fails:
        # All of them for the begin; then its own and another one for each branch.
        assert started.count("look") <= WIDE + 2 * WIDE
