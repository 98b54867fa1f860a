"""Owns the mending of a conversation whose tool call was cut: models refuse a history with an unanswered call.

When a turn was cancelled or failed while tools ran, the assistant's message asks for results that never came. The next
message then brings answers that say so, in front of the user's own, in the same input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.base import CheckpointTuple

CUT = "This call was cut off before it returned; whether it took effect is not known."
MESSAGES = "messages"


def mended(given: Any, head: CheckpointTuple | None) -> Any:
    """Returns the input with answers for calls that the last turn left unanswered in front.

    Args:
        given: the turn's input; left as it is unless it adds messages.
        head: the checkpoint it is applied to.
    """
    if head is None or not isinstance(given, Mapping):
        return given
    named = cast("Mapping[str, Any]", given)
    added = named.get(MESSAGES)
    if not isinstance(added, list) or not added:
        return cast("Any", given)
    cut = unanswered(head.checkpoint["channel_values"].get(MESSAGES))
    if not cut:
        return cast("Any", given)
    return {**named, MESSAGES: [*cut, *cast("list[Any]", added)]}


def unanswered(messages: Any) -> list[ToolMessage]:
    """Returns an answer for each call of the last assistant message that has none."""
    if not isinstance(messages, Sequence):
        return []
    answered: set[str] = set()
    for message in reversed(cast("Sequence[Any]", messages)):
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
        elif isinstance(message, AIMessage):
            return [
                ToolMessage(CUT, tool_call_id=str(call["id"]), name=call["name"], status="error")
                for call in message.tool_calls
                if call["id"] not in answered
            ]
        else:
            return []
    return []
