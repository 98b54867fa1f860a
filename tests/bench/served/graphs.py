"""The graphs that every contender runs, this file as it is. It imports nothing of this project.

`BENCH_DICTS` keeps messages as dicts: Temporal's plugin sends them through its JSON converter, which does not bring
message objects back. `BENCH_WRITE` has tokens written to the stream writer, the only stream that leaves the plugin's
activities. Annotations are evaluated here: aegra loads the file as a module that nobody finds by its name.
"""

import asyncio
import operator
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

DICTS = "BENCH_DICTS" in os.environ
WRITE = "BENCH_WRITE" in os.environ
TOKENS_PER_SECOND = 50
SLOW_SECONDS = 3.0

EFFECT = {"execute_in": "activity"}
INLINE = {"durable": "inline", "execute_in": "workflow"}


class OfMessages(MessagesState):
    """A conversation of LangChain messages, and how many nodes ran in it."""

    steps: Annotated[int, operator.add]


class OfDicts(TypedDict):
    """The same without message objects."""

    messages: Annotated[list[dict[str, Any]], operator.add]
    steps: Annotated[int, operator.add]


State: Any = OfDicts if DICTS else OfMessages


class Scripted(BaseChatModel):
    """Says so many tokens, one every 20 ms whatever becomes of them; each is the time at which it was said."""

    tokens: int

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content="not streamed"))])

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        began = time.monotonic()
        for number in range(self.tokens):
            await asyncio.sleep(max(0.0, began + number / TOKENS_PER_SECOND - time.monotonic()))
            yield ChatGenerationChunk(message=AIMessageChunk(content=f"{time.monotonic_ns()} "))


async def no_op(state: Any) -> dict[str, Any]:
    """Does nothing but count."""
    return {"steps": 1}


def _first(marks: Path) -> bool:
    first = not marks.exists()
    with marks.open("a") as file:
        file.write(f"{os.getpid()} {time.monotonic()}\n")
    return first


async def pause(state: Any) -> dict[str, Any]:
    """Notes its process and the time in the file that the last message names; takes long, the first time only."""
    said: Any = state["messages"][-1]
    if _first(Path(said["content"] if DICTS else said.content)):
        await asyncio.sleep(SLOW_SECONDS)
    return {"steps": 1}


async def talk_10(state: Any) -> dict[str, Any]:
    """Asks the model for little; nodes are functions of a module, as the plugin wants them."""
    return await _talk(state, 10)


async def talk_750(state: Any) -> dict[str, Any]:
    """Asks the model for more, which takes 15 seconds."""
    return await _talk(state, 750)


async def _talk(state: Any, tokens: int) -> dict[str, Any]:
    model = Scripted(tokens=tokens)
    if not WRITE:
        return {"messages": [await model.ainvoke(state["messages"])], "steps": 1}
    write, said = get_stream_writer(), ""
    async for chunk in model.astream(state["messages"]):
        write(chunk.content)
        said += str(chunk.content)
    return {"messages": [{"role": "assistant", "content": said}], "steps": 1}


def _line(count: int, node: Any, metadata: dict[str, str]) -> StateGraph[Any, Any, Any, Any]:
    builder = StateGraph[Any, Any, Any, Any](State)
    names = [f"node_{number}" for number in range(1, count + 1)]
    for name in names:
        builder.add_node(name, node, metadata=dict(metadata))
    for before, after in zip((START, *names), (*names, END), strict=True):
        builder.add_edge(before, after)
    return builder


def _fan_out(count: int) -> StateGraph[Any, Any, Any, Any]:
    builder = StateGraph[Any, Any, Any, Any](State)
    builder.add_node("node", no_op, metadata=dict(EFFECT))

    async def sends(state: Any) -> list[Send]:
        return [Send("node", {"number": number}) for number in range(count)]

    builder.add_conditional_edges(START, sends, ["node"])
    builder.add_edge("node", END)
    return builder


effects_1 = _line(1, no_op, EFFECT)
effects_4 = _line(4, no_op, EFFECT)
effects_16 = _line(16, no_op, EFFECT)
inline_4 = _line(4, no_op, INLINE)
fan_out_20 = _fan_out(20)
chat_10 = _line(1, talk_10, EFFECT)
chat_750 = _line(1, talk_750, EFFECT)
slow = _line(1, pause, EFFECT)

BUILDERS = {
    "effects_1": effects_1,
    "effects_4": effects_4,
    "effects_16": effects_16,
    "inline_4": inline_4,
    "fan_out_20": fan_out_20,
    "chat_10": chat_10,
    "chat_750": chat_750,
    "slow": slow,
}
