"""What a copy's next turn finds: a conversation that was cut is mended, compensated work is not gone on with."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langgraph.graph import START, StateGraph

from adapter.effects import effect
from tests.api.graphs import State
from tests.api.serving import Serving, serving
from tests.graphs.models import TwoTools


async def _copy(api: Serving, thread: str) -> str:
    answered = await api.http.post(f"/threads/{thread}/copy")
    assert answered.status_code == 200, answered.text
    return str(answered.json()["thread_id"])


@pytest.mark.parametrize("cancelled", [True, False])
async def test_a_tool_call_that_was_cut(database_url: str, temporal: str, cancelled: bool) -> None:
    started, go = asyncio.Event(), asyncio.Event()

    async def temperature(city: str) -> str:
        """Returns the temperature."""
        started.set()
        await go.wait()
        return "20"

    async def sky(city: str) -> str:
        """Returns the sky."""
        return "sunny"

    agent = cast("Any", create_agent(TwoTools(), [temperature, sky]))
    async with serving(database_url, temporal, {"graph": agent}) as api:
        thread = await api.thread()
        run = await api.run(thread, input={"messages": [{"role": "user", "content": "weather"}]})
        await started.wait()
        if cancelled:
            await api.sdk.runs.cancel(thread, run, wait=True)
        own = await _copy(api, thread)
        if cancelled:
            own = await _copy(api, own)  # a copy of a copy knows, too
        go.set()
        values = await api.wait(own, input={"messages": [{"role": "user", "content": "weather again"}]})
        before = [message["type"] for message in values["messages"]][: len(values["messages"]) // 2]
        assert before == ["human", "ai", "tool", "tool"]
        assert values["messages"][-1]["content"] == "It is 20 degrees and sunny."


async def test_compensated_work(database_url: str, temporal: str) -> None:
    async def pay(state: State) -> Any:
        await effect("charge", _act, compensate=_undo)
        return {"trail": ["pay"]}

    async def fail(state: State) -> Any:
        raise ValueError("no seats")

    builder = StateGraph(State)
    builder.add_node("pay", pay)
    builder.add_node("fail", fail)
    builder.add_edge(START, "pay")
    builder.add_edge("pay", "fail")
    async with serving(database_url, temporal, {"graph": builder.compile()}) as api:
        thread = await api.thread()
        await api.wait(thread, input={"trail": []})
        async with asyncio.timeout(30):
            while [e["state"] for e in await _effects(api, thread)] != ["compensated"]:
                await asyncio.sleep(0.02)
        for one in (thread, await _copy(api, thread)):
            outcome = await api.wait(one, input=None)
            assert outcome["__error__"]["error"] == "Undone", outcome


async def _effects(api: Serving, thread: str) -> list[dict[str, Any]]:
    return (await api.http.get(f"/threads/{thread}/effects")).json()


async def _act(*, idempotency_key: str) -> str:
    return "paid"


async def _undo(result: str, *, idempotency_key: str) -> None:
    return None
