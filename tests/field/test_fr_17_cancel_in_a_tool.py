"""FR-17: a cancel in a tool left its call unanswered, and every later message failed. Here the next message works."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from tests.api.serving import serving
from tests.graphs.models import TwoTools

Tool = Callable[..., Any]


@dataclass
class Hanging:
    """Makes a tool that hangs until it is cancelled, the first time, and says how it ended."""

    begun: threading.Event = field(default_factory=threading.Event)
    ended: list[str] = field(default_factory=list[str])

    def asynchronous(self, name: str, result: str) -> Tool:
        async def tool(city: str) -> str:
            """Looks something up."""
            if not self.begun.is_set():
                with self._hanging():
                    await asyncio.sleep(60)
            return result

        tool.__name__ = name
        return tool

    def synchronous(self, name: str, result: str) -> Tool:
        def tool(city: str) -> str:
            """Looks something up."""
            if not self.begun.is_set():
                with self._hanging():
                    for _ in range(6000):
                        time.sleep(0.01)
            return result

        tool.__name__ = name
        return tool

    @contextlib.contextmanager
    def _hanging(self) -> Generator[None]:
        self.begun.set()
        try:
            yield
        except BaseException as exc:
            self.ended.append(type(exc).__name__)
            raise


@pytest.mark.parametrize("kind", ["asynchronous", "synchronous"])
async def test_the_next_message_works(database_url: str, temporal: str, kind: str) -> None:
    hanging = Hanging()

    def quick(city: str) -> str:
        """Returns the sky."""
        return "sunny"

    quick.__name__ = "sky"
    slow = hanging.asynchronous if kind == "asynchronous" else hanging.synchronous
    tools = [slow("temperature", "20"), quick]
    agent = cast("Any", create_agent(TwoTools(), tools))
    async with serving(database_url, temporal, {"graph": agent}) as api:
        thread = await api.thread()
        first = {"messages": [{"role": "user", "content": "weather"}]}
        run = await api.run(thread, input=first)
        assert await asyncio.get_running_loop().run_in_executor(None, hanging.begun.wait, 30)
        await api.sdk.runs.cancel(thread, run, wait=True)
        assert hanging.ended == ["CancelledError"]
        assert await api.status(thread, run) == "interrupted"

        again = {"messages": [{"role": "user", "content": "weather again"}]}
        answered = await api.wait(thread, input=again)
        assert answered["messages"][-1]["content"] == "It is 20 degrees and sunny."
        messages = (await api.stack.state("graph", thread)).values["messages"]

    assert _unanswered(messages) == []


def _unanswered(messages: list[AnyMessage]) -> list[str]:
    """Returns the calls that another message than an answer followed."""
    open_calls, unanswered = set[str](), list[str]()
    for message in messages:
        if isinstance(message, ToolMessage):
            open_calls.discard(message.tool_call_id)
            continue
        unanswered += open_calls
        open_calls = set[str]()
        if isinstance(message, AIMessage):
            open_calls.update(str(call["id"]) for call in message.tool_calls)
    return [*unanswered, *open_calls]
