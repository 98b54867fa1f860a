"""Graphs whose model is cut off in the middle of its first answer; another process's call gets to the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph

from tests.field.project.stopping import tell, told

FIRST = "Once upon a".split()
SECOND = "There was a king".split()


class Model(BaseChatModel):
    """Streams some words and never ends, then another answer."""

    @property
    def _llm_type(self) -> str:
        return "cut-off"

    def _generate(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        first = not told("begun")
        tell("begun")
        for word in FIRST if first else SECOND:
            yield ChatGenerationChunk(message=AIMessageChunk(content=f"{word} "))
        if first:
            await asyncio.Event().wait()


async def talk(state: MessagesState) -> Any:
    get_stream_writer()({"looked": "up"})
    return {"messages": [await Model().ainvoke(state["messages"])]}


def _around(node: Any) -> Any:
    builder: Any = StateGraph(MessagesState)
    return builder.add_node("talk", node).add_edge(START, "talk").compile()


talking_graph = _around(talk)
talking_inside_graph = _around(_around(talk))
