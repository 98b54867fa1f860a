"""FR-16: a cancel lost what was streamed and not yet in a checkpoint. Here it is in the event log to the last token.

What marks it: the run's status is `interrupted`, the log ends without the superstep's other events, and no chunk of the
message has `chunk_position: "last"`, which the last chunk of a whole one has.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph

from tests.api.serving import Event, first_events, parse, serving

WORDS = "Once upon a time".split()


class Halting(BaseChatModel):
    """Streams a few words, then nothing until it is let go."""

    halted: asyncio.Event
    go: asyncio.Event

    @property
    def _llm_type(self) -> str:
        return "halting"

    def _generate(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for word in WORDS:
            yield ChatGenerationChunk(message=AIMessageChunk(content=f"{word} "))
        self.halted.set()
        await self.go.wait()


def _graph(model: Halting) -> Any:
    async def talk(state: MessagesState) -> Any:
        get_stream_writer()({"looked up": 3})
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder: Any = StateGraph(MessagesState)
    return builder.add_node("talk", talk).add_edge(START, "talk").compile()


def _text(events: list[Event]) -> str:
    return "".join(e.data[0]["content"] for e in events if e.name == "messages")


def _is_whole(events: list[Event]) -> bool:
    return any(e.data[0].get("chunk_position") == "last" for e in events if e.name == "messages")


async def test_it_is_read_after_the_cancel(database_url: str, temporal: str) -> None:
    model = Halting(halted=asyncio.Event(), go=asyncio.Event())
    body: dict[str, Any] = {
        "assistant_id": "graph",
        "input": {"messages": [{"role": "user", "content": "A story, please"}]},
        "stream_mode": ["messages-tuple", "custom", "updates"],
    }
    # Tokens wait for each other as long as they may: at the cancel nothing of the message is stored yet.
    async with serving(database_url, temporal, {"graph": _graph(model)}, token_delay=1.0) as api:
        thread = await api.thread()
        async with api.http.stream("POST", f"/threads/{thread}/runs/stream", json=body) as live:
            place = live.headers["location"]
            chunks = live.aiter_raw()
            seen = await first_events(chunks, 1)
            await model.halted.wait()
            await api.sdk.runs.cancel(thread, place.split("/")[4], wait=True)
            seen += parse(b"".join([chunk async for chunk in chunks]))
        log = parse((await api.http.get(place, headers={"Last-Event-ID": "-1"})).content)
        run = await api.sdk.runs.get(thread, place.split("/")[4])

        assert log == seen
        assert _text(log).split() == WORDS
        assert [e.data for e in log if e.name == "custom"] == [{"looked up": 3}]
        assert (run["status"], _is_whole(log)) == ("interrupted", False)
        assert not [e for e in log if e.name in ("updates", "error")]

        model.go.set()
        whole = await api.stream(thread, **body)
        assert _is_whole(whole)
