"""Owns what the scripted model says: a pure function from a conversation to the next message.

Next: `support/model.py`, which streams it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

_ORDER = re.compile(r"\border\s+(?:number\s+|no\.?\s*)?#?(?P<id>[a-z-]*\d[\w-]*)", re.IGNORECASE)

_ABOUT = (
    "I am the support assistant, and I am glad you are here. "
    "I can tell you where an order is, and I can give its money back once a person has agreed. "
    'Just name the order, like "where is order 7?" or "please refund order 7". '
    "You may close this window while I work: the answer will be here when you come back."
)
_WHICH = 'I can see to that refund. Which order is it? Write it like this: "refund order 7".'


@dataclass(frozen=True)
class Call:
    """A tool to call."""

    name: str
    args: dict[str, str]


@dataclass(frozen=True)
class Reply:
    """The next message: its id, and either text or one tool call."""

    message_id: str
    text: str = ""
    call: Call | None = None
    call_id: str = field(default="", kw_only=True)


def reply(messages: Sequence[BaseMessage], tools: Collection[str]) -> Reply:
    """Returns what comes next in this conversation, given the names of the tools that may be called.

    The ids are derived from the conversation as well: asked twice about the same one, it gives the same
    message, to the letter.
    """
    digest = _digest(messages)
    message_id = f"msg_{digest[:24]}"
    call = _next_call(messages, tools)
    if call is not None:
        return Reply(message_id, call=call, call_id=f"call_{digest[24:48]}")
    return Reply(message_id, text=_text(messages))


def _next_call(messages: Sequence[BaseMessage], tools: Collection[str]) -> Call | None:
    order_id = _order_id(messages)
    if order_id is None:
        return None
    wanted = ["lookup_order", "refund_order"] if _wants_refund(messages) else ["lookup_order"]
    done = {message.name for message in _since_asked(messages) if isinstance(message, ToolMessage)}
    for name in wanted:
        if name in tools and name not in done:
            return Call(name, {"order_id": order_id})
    return None


def _text(messages: Sequence[BaseMessage]) -> str:
    results = [message.text for message in _since_asked(messages) if isinstance(message, ToolMessage)]
    if results:
        return f"{' '.join(results)} Is there anything else that I can do for you?"
    return _WHICH if _wants_refund(messages) else _ABOUT


def _order_id(messages: Sequence[BaseMessage]) -> str | None:
    """Returns the order of the last question; a refund may also mean one that was talked about before."""
    questions = [message.text for message in messages if isinstance(message, HumanMessage)]
    for question in reversed(questions if _wants_refund(messages) else questions[-1:]):
        if found := _ORDER.search(question):
            return found["id"]
    return None


def _wants_refund(messages: Sequence[BaseMessage]) -> bool:
    questions = [message.text for message in messages if isinstance(message, HumanMessage)]
    return bool(questions) and "refund" in questions[-1].lower()


def _since_asked(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    for index in range(len(messages) - 1, -1, -1):
        if isinstance(messages[index], HumanMessage):
            return messages[index + 1 :]
    return messages


def _digest(messages: Sequence[BaseMessage]) -> str:
    # Not the messages' own ids: they are random where the client sent none.
    said = [
        (message.type, str(message.text), message.tool_calls if isinstance(message, AIMessage) else None)
        for message in messages
    ]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()
