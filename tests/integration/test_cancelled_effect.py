"""An effect that is under way when its turn is cancelled is let end, and journaled."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from adapter.effects import effect
from adapter.store import requests, stops
from tests.servers import Postgres
from tests.stack import stack
from workflows import names


class State(TypedDict, total=False):
    paid: str


async def test_the_journal_has_its_result(postgres: Postgres, temporal: str) -> None:
    asked, answer, keys = asyncio.Event(), asyncio.Event(), list[str]()

    async def charge(*, idempotency_key: str) -> str:
        keys.append(idempotency_key)
        asked.set()
        await answer.wait()
        return "receipt"

    async def pay(state: State) -> Any:
        return {"paid": await effect("charge", charge)}

    builder: Any = StateGraph(State)
    builder.add_node("pay", pay).add_edge(START, "pay")
    async with stack(postgres.clone(), temporal, {"graph": builder.compile()}) as running:
        thread = str(uuid.uuid4())
        turn = await running.submit(thread=thread, input={"paid": ""})
        await asked.wait()
        await running.client.get_workflow_handle(names.workflow_id(thread)).signal(names.CANCEL, turn)
        await stops.notify_cancel(running.pool, turn)
        await asyncio.sleep(0.5)
        answer.set()
        stopped = await running.ended(turn)
        (journaled,) = await requests.list_effects(running.pool, thread)
        again = await running.turn(thread=thread, input=None)

        assert stopped["status"] == "interrupted"
        assert (journaled["state"], journaled["attempts"]) == ("finished", 1)
        assert again["status"] == "success"
        assert (await running.state("graph", thread)).values["paid"] == "receipt"
        assert len(set(keys)) == 1


async def test_a_cancel_is_not_swallowed_by_a_node_that_returns(postgres: Postgres, temporal: str) -> None:
    started, ran = asyncio.Event(), list[str]()

    async def stubborn(state: State) -> Any:
        started.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ran.append("stubborn")
        return {"paid": "kept"}

    async def after(state: State) -> Any:
        ran.append("after")

    builder: Any = StateGraph(State)
    builder.add_node("stubborn", stubborn).add_node("after", after)
    builder.add_edge(START, "stubborn").add_edge("stubborn", "after")
    async with stack(postgres.clone(), temporal, {"graph": builder.compile()}) as running:
        thread = str(uuid.uuid4())
        turn = await running.submit(thread=thread, input={"paid": ""})
        await started.wait()
        await running.client.get_workflow_handle(names.workflow_id(thread)).signal(names.CANCEL, turn)
        await stops.notify_cancel(running.pool, turn)

        assert (await running.ended(turn))["status"] == "interrupted"
        assert ran == ["stubborn"]


@pytest.mark.parametrize("handled", [False, True])
async def test_what_a_node_makes_of_its_cancel_is_no_failure(
    postgres: Postgres, temporal: str, handled: bool
) -> None:
    started, ran = asyncio.Event(), list[str]()

    async def node(state: State) -> Any:
        ran.append("node")
        started.set()
        if len(ran) == 1:
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                raise ValueError("the connection was closed") from None

    async def handler(state: State) -> Any:
        ran.append("handler")

    builder: Any = StateGraph(State)
    builder.add_node("node", node, error_handler=handler if handled else None).add_edge(START, "node")
    async with stack(postgres.clone(), temporal, {"graph": builder.compile()}) as running:
        thread = str(uuid.uuid4())
        turn = await running.submit(thread=thread, input={"paid": ""})
        await started.wait()
        await running.client.get_workflow_handle(names.workflow_id(thread)).signal(names.CANCEL, turn)
        await stops.notify_cancel(running.pool, turn)

        assert (await running.ended(turn))["status"] == "interrupted"
        assert (await running.turn(thread=thread, input=None))["status"] == "success"
        assert ran == ["node", "node"]
