"""A turn whose history grows long goes on in another run, with its frontier and its queue, unseen by clients."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph

from tests import servers
from tests.graphs.keyed import KEYS, State, keyed
from tests.servers import Postgres
from tests.stack import stack
from workflows import names

pytestmark = pytest.mark.slow

LOOPS = 30


def looping() -> Any:
    async def count(state: State) -> Any:
        return {"n": state.get("n", 0) + 1}

    def again(state: State) -> str:
        return "pay" if state.get("n", 0) < LOOPS else END

    builder: Any = StateGraph(State)
    builder.add_node("pay", keyed("pay")).add_node("count", count)
    builder.add_edge(START, "pay").add_edge("pay", "count")
    builder.add_conditional_edges("count", again, ["pay", END])
    return builder.compile()


@pytest.fixture
def suggesting_early() -> Iterator[str]:
    with servers.temporal("limit.historyCount.suggestContinueAsNew=60") as address:
        yield address


@pytest.mark.timeout(120)
async def test_it_goes_on_in_another_run(postgres: Postgres, suggesting_early: str) -> None:
    KEYS.clear()
    config = {"recursion_limit": 200}
    async with stack(postgres.clone(), suggesting_early, {"graph": looping()}) as running:
        thread = str(uuid.uuid4())
        first = await running.submit(thread=thread, input={"trail": []}, config=config, stream_mode="updates")
        second = await running.submit(thread=thread, input={"trail": [], "n": LOOPS - 1}, config=config)
        rows = [await running.ended(turn) for turn in (first, second)]
        updates = [next(iter(data)) for name, data in await running.events(first) if name == "updates"]
        runs = [w async for w in running.client.list_workflows(f'WorkflowId = "{names.workflow_id(thread)}"')]

    assert [row["status"] for row in rows] == ["success", "success"]
    assert updates == ["pay", "count"] * LOOPS
    assert len(runs) > 3
    assert len({key for _, key in KEYS}) == len(KEYS) == LOOPS + 1
