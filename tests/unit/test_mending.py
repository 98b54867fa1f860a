"""Which tool calls of a conversation that was cut have no answer."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from adapter.mending import unanswered


def test_what_is_unanswered() -> None:
    calls: list[Any] = [{"name": "a", "args": {}, "id": "1"}, {"name": "b", "args": {}, "id": "2"}]
    asked = AIMessage("", tool_calls=calls)

    assert [m.tool_call_id for m in unanswered([HumanMessage("x"), asked])] == ["1", "2"]
    assert [m.tool_call_id for m in unanswered([asked, ToolMessage("", tool_call_id="1")])] == ["2"]
    assert unanswered([asked, ToolMessage("", tool_call_id="1"), ToolMessage("", tool_call_id="2")]) == []
    assert unanswered([asked, HumanMessage("x")]) == []
    assert unanswered(None) == []
