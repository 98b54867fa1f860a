"""A join's stream_mode picks events by their names on the wire."""

from __future__ import annotations

from tests.api.graphs import chatting
from tests.api.serving import parse, serving


async def test_both_forms_of_messages(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"chat": chatting()}) as api:
        thread = await api.thread()
        asked = ["messages", "messages-tuple", "values"]
        body = {"messages": [{"role": "user", "content": "hi"}]}
        await api.stream(thread, "chat", input=body, stream_mode=asked)
        run = (await api.http.get(f"/threads/{thread}/runs")).json()[0]["run_id"]

        async def names(mode: str) -> set[str]:
            answered = await api.http.get(
                f"/threads/{thread}/runs/{run}/stream",
                params={"stream_mode": mode},
                headers={"Last-Event-ID": "-1"},
            )
            return {e.name for e in parse(answered.content)}

        assert await names("messages-tuple") == {"messages"}
        assert await names("messages") == {"messages/metadata", "messages/partial"}
        assert await names("values") == {"values"}
        assert await names("updates") == set()
