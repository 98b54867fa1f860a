"""Owns the booking graph: plan → charge → notify → finish.

`charge` and `notify` reach the world and are durable steps by default; `plan` and `finish` only compute, say
so in their metadata, and run along with the step before them. Input is a chat message ("book room 12 for 80")
or the two values themselves ({"booking_id": "b-1", "amount": 80}).
"""

from __future__ import annotations

import re
from typing import Any, Literal

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from adapter.effects import effect
from booking import client

INLINE: dict[str, Any] = {"durable": "inline"}
# The amount follows the last "for" ("for 2 nights for 300"); one with a fraction is not guessed at.
_REQUEST = re.compile(r"\bbook\s+(?P<what>[\w -]+)\s+for\s+[$€£]?(?P<amount>\d+)\b(?![.,]\d)", re.IGNORECASE)
_HELP = "I can book a room for you. Tell me which one and for how much, like: book room 12 for 80."


class BookingState(MessagesState, total=False):
    """The conversation and the booking at hand; `amount` is in whole units of the currency."""

    booking_id: str | None
    amount: int | None
    charge: client.Receipt | None
    notified: client.Receipt | None


def plan(state: BookingState) -> dict[str, Any]:
    """Decides what to book, and for how much; nothing, when the message does not say."""
    wanted = _wanted(state)
    booking_id, amount = wanted if wanted is not None else (None, None)
    return {"booking_id": booking_id, "amount": amount, "charge": None, "notified": None}


def route(state: BookingState) -> Literal["charge", "finish"]:
    """Leaves both effects out when there is nothing to book."""
    return "finish" if state.get("amount") is None else "charge"


async def charge(state: BookingState) -> dict[str, Any]:
    """Takes the money. Its parameters come from the state alone, so a repeat is the identical request."""
    receipt = await effect(
        "charge", client.charge, booking_id=state.get("booking_id"), amount=state.get("amount")
    )
    return {"charge": receipt}


async def notify(state: BookingState) -> dict[str, Any]:
    """Tells whoever made the booking that it is paid."""
    receipt = await effect(
        "notify", client.notify, booking_id=state.get("booking_id"), text=f"Paid: {state.get('amount')}."
    )
    return {"notified": receipt}


def finish(state: BookingState) -> dict[str, Any]:
    """Answers in the chat."""
    receipt = state.get("charge")
    if receipt is None:
        return {"messages": [AIMessage(_HELP)]}
    booked = f"Booked {state.get('booking_id')} for {state.get('amount')}."
    return {
        "messages": [AIMessage(f"{booked} Your receipt is {receipt['id']}, a confirmation is on its way.")]
    }


def _wanted(state: BookingState) -> tuple[str, int] | None:
    messages = state.get("messages", [])
    asked = bool(messages) and isinstance(messages[-1], HumanMessage)
    if asked and (found := _REQUEST.search(messages[-1].text)):
        return "-".join(found["what"].lower().split()), int(found["amount"])
    booking_id, amount, paid = state.get("booking_id"), state.get("amount"), state.get("charge")
    if booking_id is None or amount is None:
        return None
    # State outlives a turn: a message that asks for no booking must not pay the last one once more.
    if asked and paid is not None and paid["parameters"] == {"booking_id": booking_id, "amount": amount}:
        return None
    return booking_id, amount


_builder = StateGraph(BookingState)
_builder.add_node("plan", plan, metadata=INLINE)
_builder.add_node("charge", charge)
_builder.add_node("notify", notify)
_builder.add_node("finish", finish, metadata=INLINE)
_builder.add_edge(START, "plan")
_builder.add_conditional_edges("plan", route)
_builder.add_edge("charge", "notify")
_builder.add_edge("notify", "finish")
_builder.add_edge("finish", END)

graph = _builder.compile(name="booking")
