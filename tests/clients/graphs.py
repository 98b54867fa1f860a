"""A chat whose model streams words, and does by its last message what a test wants: wait, ask, fail, try again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import RetryPolicy, interrupt
from typing_extensions import TypedDict

from tests.clients.gates import Gates


class Chat(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    answer: str


class Words(BaseChatModel):
    """Says a sentence word by word; after the second it waits at a gate, if it was given one.

    With `breaks` it raises behind the gate the first time.
    """

    sentence: str
    gates: Any = None
    gate: str | None = None
    breaks: bool = False

    @property
    def _llm_type(self) -> str:
        return "words"

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kw: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.sentence))])

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kw: Any
    ) -> ChatResult:
        if self.gate is not None:
            await self.gates.pass_(self.gate)
        return self._generate(messages)

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kw: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for number, word in enumerate(self.sentence.split(" ")):
            if number == 2 and self.gate is not None:
                first = await self.gates.pass_(self.gate)
                if first and self.breaks:
                    raise ConnectionError("the provider closed the connection")
            yield ChatGenerationChunk(message=AIMessageChunk(content=word if number == 0 else f" {word}"))


def chat(gates: Gates) -> Any:
    """Answers "You said …".

    To "hold …" it waits in the middle of it, to "twice …" it breaks off there and begins anew; it asks about "ask …"
    and fails on "fail …".
    """

    async def listen(state: Chat) -> Any:
        text = _last(state)
        get_stream_writer()({"heard": text})
        if text.startswith("fail"):
            raise ValueError(f"boom: {text}")
        if text.startswith("ask"):
            return {"answer": interrupt({"question": f"{text}?"})}
        return {"answer": ""}

    async def talk(state: Chat) -> Any:
        text = _last(state)
        answer = state.get("answer")
        sentence = f"You said {text}" + (f" and answered {answer}" if answer else "")
        twice = text.startswith("twice")
        gate = text if twice or text.startswith("hold") else None
        model = Words(sentence=sentence, gates=gates, gate=gate, breaks=twice)
        return {"messages": [await model.ainvoke(state.get("messages", []))]}

    builder = StateGraph(Chat)
    builder.add_node("listen", listen)
    again = RetryPolicy(initial_interval=0.01, jitter=False, max_attempts=2, retry_on=ConnectionError)
    builder.add_node("talk", talk, retry_policy=again)
    builder.add_edge(START, "listen")
    builder.add_edge("listen", "talk")
    return builder.compile()


def _last(state: Chat) -> str:
    return str(state.get("messages", [])[-1].text)
