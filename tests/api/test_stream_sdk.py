"""The official SDK streams a run, with tokens, and finds it finished afterwards."""

from __future__ import annotations

from typing import Any

from tests.api.graphs import chatting
from tests.api.serving import serving


async def test_tokens_and_values(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"chat": chatting()}) as api:
        thread = await api.sdk.threads.create(metadata={"user": "u1"})
        parts: list[Any] = [
            part
            async for part in api.sdk.runs.stream(
                thread["thread_id"],
                "chat",
                input={"messages": [{"role": "user", "content": "hi"}]},
                stream_mode=["messages-tuple", "values"],
            )
        ]
        assert parts[0].event == "metadata"
        tokens = [part.data[0]["content"] for part in parts if part.event == "messages"]
        assert "".join(tokens) == "Hello there friend" and len(tokens) > 3
        assert parts[-1].event == "values"
        assert [m["content"] for m in parts[-1].data["messages"]] == ["hi", "Hello there friend"]
        run = (await api.sdk.runs.list(thread["thread_id"]))[0]
        assert (run["status"], run["run_id"]) == ("success", parts[0].data["run_id"])
        state = await api.sdk.threads.get_state(thread["thread_id"])
        assert state["values"] == parts[-1].data
