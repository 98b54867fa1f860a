"""A chat model without network: it streams, calls two tools at once, then answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, cast

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType] - BaseCheckpointSaver has no argument there
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from tests.graphs.calls import called


class TwoTools(BaseChatModel):
    """Calls both tools first, answers once it sees their results."""

    @property
    def _llm_type(self) -> str:
        return "two-tools"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self

    def _reply(self, messages: list[BaseMessage]) -> AIMessage:
        if isinstance(messages[-1], ToolMessage):
            return AIMessage("It is 20 degrees and sunny.")
        return AIMessage(
            "",
            tool_calls=[
                {"name": "temperature", "args": {"city": "Bonn"}, "id": "call-1"},
                {"name": "sky", "args": {"city": "Bonn"}, "id": "call-2"},
            ],
        )

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kw: Any
    ) -> Any:
        called("model")
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages))])

    def _chunks(self, messages: list[BaseMessage]) -> Iterator[ChatGenerationChunk]:
        called("model")
        reply = self._reply(messages)
        if reply.tool_calls:
            yield ChatGenerationChunk(
                message=AIMessageChunk(
                    content="",
                    tool_call_chunks=[
                        {"name": c["name"], "args": '{"city": "Bonn"}', "id": c["id"], "index": i}
                        for i, c in enumerate(reply.tool_calls)
                    ],
                )
            )
            return
        for word in str(reply.content).split(" "):
            yield ChatGenerationChunk(message=AIMessageChunk(content=f"{word} "))

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kw: Any
    ) -> Any:
        yield from self._chunks(messages)

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kw: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._chunks(messages):
            yield chunk


class InPieces(TwoTools):
    """Calls one tool, and streams its arguments piece by piece."""

    def _chunks(self, messages: list[BaseMessage]) -> Iterator[ChatGenerationChunk]:
        if isinstance(messages[-1], ToolMessage):
            yield from super()._chunks(messages)
            return
        called("model")
        for number, piece in enumerate(("", '{"city": ', '"Bonn"}')):
            name, id_ = (None, None) if number else ("temperature", "call-1")
            call = tool_call_chunk(name=name, args=piece, id=id_, index=0)
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[call]))


def temperature(city: str) -> str:
    """Returns the temperature."""
    called("temperature")
    return f"20 in {city}"


def sky(city: str) -> str:
    """Returns the sky."""
    called("sky")
    return f"sunny in {city}"


def scripted_agent(model: BaseChatModel | None = None) -> Any:
    return cast("Any", create_agent(model or TwoTools(), [temperature, sky]))
