"""FR-17: a turn is cancelled in the middle of a tool; the next message meets no unanswered tool call."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any, cast

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from adapter.mending import unanswered
from adapter.store import requests
from tests.graphs.models import TwoTools
from tests.servers import Postgres
from tests.stack import stack
from workflows import names


def test_what_is_unanswered() -> None:
    calls: list[Any] = [{"name": "a", "args": {}, "id": "1"}, {"name": "b", "args": {}, "id": "2"}]
    asked = AIMessage("", tool_calls=calls)

    assert [m.tool_call_id for m in unanswered([HumanMessage("x"), asked])] == ["1", "2"]
    assert [m.tool_call_id for m in unanswered([asked, ToolMessage("", tool_call_id="1")])] == ["2"]
    assert unanswered([asked, ToolMessage("", tool_call_id="1"), ToolMessage("", tool_call_id="2")]) == []
    assert unanswered([asked, HumanMessage("x")]) == []
    assert unanswered(None) == []


async def test_the_next_message_works(postgres: Postgres, temporal: str) -> None:
    started = asyncio.Event()
    hang = [True]

    async def temperature(city: str) -> str:
        """Returns the temperature."""
        started.set()
        if hang[0]:
            await asyncio.sleep(60)
        return "20"

    async def sky(city: str) -> str:
        """Returns the sky."""
        return "sunny"

    agent = cast("Any", create_agent(TwoTools(), [temperature, sky]))
    async with stack(postgres.clone(), temporal, {"graph": agent}) as running:
        thread = str(uuid.uuid4())
        turn = await running.submit(thread=thread, input={"messages": [("user", "weather")]})
        await started.wait()
        await running.client.get_workflow_handle(names.workflow_id(thread)).signal(names.CANCEL, turn)
        await requests.notify_cancel(running.pool, turn)
        assert (await running.ended(turn))["status"] == "interrupted"

        hang[0] = False
        await running.turn(thread=thread, input={"messages": [("user", "weather again")]})
        messages = (await running.state("graph", thread)).values["messages"]

    open_calls: set[str] = set()
    for message in messages:
        if isinstance(message, AIMessage):
            assert not open_calls
            open_calls = {str(call["id"]) for call in message.tool_calls}
        elif isinstance(message, ToolMessage):
            open_calls.discard(message.tool_call_id)
        else:
            assert not open_calls, "a message stands where an answer should"
    assert messages[-1].content == "It is 20 degrees and sunny."
