"""Owns the choice of the chat model, and the scripted one that needs no account.

The scripted model streams token by token and calls tools like a real one, so that everything around it can be
tried without a network; what it says is in `support/script.py`. Next: `support/graph.py`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.chat_models import agenerate_from_stream, generate_from_stream
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, SecretStr

from support.script import reply

_TOKENS = re.compile(r"\S+\s*|\s+")


def chat_model() -> BaseChatModel:
    """Returns the model that the environment asks for.

    With OPENAI_API_KEY it is the OpenAI-compatible one at OPENAI_BASE_URL, named by SUPPORT_MODEL; without,
    the scripted one, which waits SUPPORT_TOKEN_DELAY seconds before each token.
    """
    key = os.environ.get("OPENAI_API_KEY")
    if not key:
        return ScriptedChatModel(token_delay=float(os.environ.get("SUPPORT_TOKEN_DELAY") or 0.02))

    from langchain_openai import ChatOpenAI  # a second of imports, for those who use it

    return ChatOpenAI(
        model=os.environ.get("SUPPORT_MODEL") or "gpt-4.1-mini",
        api_key=SecretStr(key),
        base_url=os.environ.get("OPENAI_BASE_URL") or None,
        streaming=True,
        stream_usage=True,
    )


class ScriptedChatModel(BaseChatModel):
    """A chat model whose next message is a function of the conversation alone."""

    token_delay: float = Field(default=0.02, ge=0, description="Seconds to wait before each token.")

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": "scripted"}

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Lets the script call these tools; which one, and when, is the script's choice."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        # No call to `on_llm_new_token`: BaseChatModel makes it for every chunk, another would repeat it.
        for chunk in _chunks(messages, kwargs):
            time.sleep(self.token_delay)
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in _chunks(messages, kwargs):
            await asyncio.sleep(self.token_delay)
            yield chunk

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return generate_from_stream(self._stream(messages, stop, **kwargs))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return await agenerate_from_stream(self._astream(messages, stop, **kwargs))


def _chunks(messages: Sequence[BaseMessage], bound: dict[str, Any]) -> Iterator[ChatGenerationChunk]:
    """Yields the next message in pieces, shaped as a provider's stream is: all with the one message id."""
    tools = cast("list[dict[str, Any]]", bound.get("tools") or [])
    said = reply(messages, {tool["function"]["name"] for tool in tools})
    if said.call is None:
        pieces = _TOKENS.findall(said.text)
        for piece in pieces:
            yield _chunk(AIMessageChunk(content=piece, id=said.message_id))
    else:
        # Name and id come once, in front; the arguments' JSON follows in pieces, tied to them by the index.
        pieces = _TOKENS.findall(json.dumps(said.call.args))
        opening = tool_call_chunk(name=said.call.name, args="", id=said.call_id, index=0)
        yield _chunk(AIMessageChunk(content="", id=said.message_id, tool_call_chunks=[opening]))
        for piece in pieces:
            part = tool_call_chunk(args=piece, index=0)
            yield _chunk(AIMessageChunk(content="", id=said.message_id, tool_call_chunks=[part]))
    # Usage and model name come with the last chunk only: merged chunks add the one and join the other.
    yield _chunk(
        AIMessageChunk(
            content="",
            id=said.message_id,
            usage_metadata=_usage(messages, len(pieces)),
            response_metadata={
                "model_name": "scripted",
                "finish_reason": "stop" if said.call is None else "tool_calls",
            },
            chunk_position="last",
        )
    )


def _chunk(message: AIMessageChunk) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=message)


def _usage(messages: Sequence[BaseMessage], output_tokens: int) -> UsageMetadata:
    input_tokens = sum(len(_TOKENS.findall(message.text)) for message in messages)
    return UsageMetadata(
        input_tokens=input_tokens, output_tokens=output_tokens, total_tokens=input_tokens + output_tokens
    )
