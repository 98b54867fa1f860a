"""FR-26: a model call that is retried says its text twice. Here a client shows what the last attempt said, no more.

The lost attempt's message is removed from the screens that have it, by the protocol's own `remove` message; who joins
or comes back later is not told of its tokens and custom events any more.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import RetryPolicy

from tests.api.serving import Event, in_front_of, parse, serving
from tests.field.screen import Screen, shown
from tests.field.told import field

PARTIAL = ("messages/metadata", "messages/partial", "messages/complete")
BODY: dict[str, Any] = {
    "input": {"messages": [{"role": "user", "content": "A story, please"}]},
    "stream_mode": ["messages-tuple", "messages", "custom", "values", "events"],
    "stream_subgraphs": True,
}
SECOND = ["There was a king "]


def _kinds(events: list[Event]) -> list[str]:
    return [e.name.split("|")[0] for e in events]


def _starts(events: list[Event]) -> int:
    return len([e for e in events if e.name == "events" and e.data["event"] == "on_chat_model_start"])


def _ids(events: list[Event]) -> list[int]:
    return [int(e.id or 0) for e in events]


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("graph", ["talking", "talking_inside"])
async def test_killed_in_the_middle(database_url: str, temporal: str, tmp_path: Path, graph: str) -> None:
    async with field(database_url, temporal, tmp_path) as on, in_front_of(on.it.stack) as api:
        first = on.it.workers.start()
        await api.thread(thread_id=on.thread)
        async with api.http.stream(
            "POST", f"/threads/{on.thread}/runs/stream", json={"assistant_id": graph, **BODY}
        ) as live:
            chunks, place = live.aiter_raw(), live.headers["location"]
            raw = b""
            while not raw.endswith(b"\r\n\r\n") or _kinds(parse(raw)).count("messages") < 3:
                raw += await anext(chunks)
            left = parse(raw)  # this one comes back later
            assert shown(left, "messages") == ["Once upon a "] == shown(left, *PARTIAL)
            first.kill()
            await first.ended()
            on.it.workers.start()
            stays = left + parse(b"".join([chunk async for chunk in chunks]))
        back = left + await _rejoined(api, place, left[-1].id)
        late = await _rejoined(api, place, "-1")

        for events in (stays, back, late):
            assert shown(events, "messages") == SECOND == shown(events, *PARTIAL)
            assert shown(events, "messages", "values") == SECOND
            assert _ids(events) == sorted(set(_ids(events)))
        assert back == stays
        # Who was not there is told of the last attempt only.
        assert "Once" not in str(late) and _kinds(late).count("custom") == 1 == _starts(late)
        assert _kinds(stays).count("custom") == 2 == _starts(stays)
        # From the removal on, no screen has shown both.
        screen, seen = Screen(), list[list[str]]()
        for event in stays:
            screen.take(event)
            seen.append(screen.texts)
        assert max(len(texts) for texts in seen) == 1


async def _rejoined(api: Any, place: str, last: str | None) -> list[Event]:
    return parse((await api.http.get(place, headers={"Last-Event-ID": last or ""})).content)


class Stumbling(BaseChatModel):
    """Raises after some words, the first times it is asked."""

    left: int

    @property
    def _llm_type(self) -> str:
        return "stumbling"

    def _generate(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        self.left -= 1
        for word in ("There", "was"):
            yield ChatGenerationChunk(message=AIMessageChunk(content=f"{word} "))
        if self.left >= 0:
            raise ConnectionError("the model is gone")
        yield ChatGenerationChunk(message=AIMessageChunk(content="a king "))


def _graph(model: Stumbling, *, inside: bool, **options: Any) -> Any:
    async def talk(state: MessagesState) -> Any:
        get_stream_writer()({"looked": "up"})
        return {"messages": [await model.ainvoke(state["messages"])]}

    inner: Any = StateGraph(MessagesState)
    inner.add_node("talk", talk, retry_policy=RetryPolicy(initial_interval=0.01, jitter=False))
    inner.add_edge(START, "talk")
    if not inside:
        return inner.compile()
    outer: Any = StateGraph(MessagesState)
    return outer.add_node("child", inner.compile(**options)).add_edge(START, "child").compile()


@pytest.mark.parametrize(
    ("inside", "subgraphs", "options"),
    [
        (False, False, {}),
        (False, True, {}),
        (True, True, {}),
        (True, True, {"checkpointer": True}),
    ],
    ids=["plain", "root", "inside", "kept"],
)
async def test_retried_by_its_policy(
    database_url: str, temporal: str, inside: bool, subgraphs: bool, options: dict[str, Any]
) -> None:
    graph = _graph(Stumbling(left=2), inside=inside, **options)
    async with serving(database_url, temporal, {"graph": graph}) as api:
        thread = await api.thread()
        body: dict[str, Any] = {**BODY, "stream_subgraphs": subgraphs}
        live = await api.stream(thread, **body)
        (run,) = await api.sdk.runs.list(thread)
        late = await _rejoined(api, f"/threads/{thread}/runs/{run['run_id']}/stream", "-1")

    for events in (live, late):
        assert shown(events, "messages") == SECOND == shown(events, *PARTIAL)
        assert shown(events, "messages", "values") == SECOND
    assert _kinds(late).count("custom") == 1 == _starts(late)
