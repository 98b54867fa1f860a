"""FR-22: a client that answered at once was told that nothing waits. Here it may answer from the event's callback.

The answer is sent as soon as the question is read from the stream, while the asking run has not ended yet.
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from tests.api.serving import Serving, parse, serving

pytestmark = pytest.mark.slow

TIMES = 50


class State(TypedDict, total=False):
    answers: list[int]


def _graph() -> Any:
    """Asks again after each answer."""

    async def ask(state: State) -> Any:
        answer = interrupt(len(state.get("answers", [])))
        return {"answers": [*state.get("answers", []), answer]}

    def again(state: State) -> str:
        return END if len(state.get("answers", [])) == TIMES else "ask"

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", again, [END, "ask"])
    return builder.compile()


async def test_fifty_times(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"graph": _graph()}) as api:
        thread = await api.thread()
        body: dict[str, Any] = {"input": {"answers": []}}
        open_streams: list[httpx.Response] = []
        for number in range(TIMES):
            stream, question = await _question(api, thread, body)
            assert question == number
            open_streams.append(stream)
            body = {"command": {"resume": number}}
        outcome = await api.wait(thread, **body)
        for stream in open_streams:
            await stream.aclose()
        assert outcome == {"answers": list(range(TIMES))}
        runs = (await api.http.get(f"/threads/{thread}/runs?limit=100")).json()
        assert [run["status"] for run in runs] == ["success"] * (TIMES + 1)


async def _question(api: Serving, thread: str, body: dict[str, Any]) -> tuple[httpx.Response, Any]:
    """Starts a run and reads its stream up to the question; the stream stays open."""
    request = api.http.build_request(
        "POST",
        f"/threads/{thread}/runs/stream",
        json={"assistant_id": "graph", "stream_mode": ["updates"], "on_disconnect": "continue", **body},
    )
    answered = await api.http.send(request, stream=True)
    assert answered.status_code == 200, await answered.aread()
    raw = b""
    async for chunk in answered.aiter_raw():
        raw += chunk
        if raw.endswith(b"\r\n\r\n") and (events := parse(raw)) and "__interrupt__" in events[-1].data:
            return answered, events[-1].data["__interrupt__"][0]["value"]
    raise AssertionError(f"it asked nothing: {raw!r}")
