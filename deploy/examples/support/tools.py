"""Owns the agent's two tools. The refund asks a person first and is an effect; next: `support/graph.py`."""

from __future__ import annotations

from typing import Any

from booking import client
from langchain_core.tools import tool
from langgraph.types import interrupt

from adapter.effects import effect
from support import orders


@tool
async def lookup_order(order_id: str) -> str:
    """Look up an order: what it is, what it cost and where it is.

    Args:
        order_id: The order's id.
    """
    order = orders.find(order_id)
    return f"Order {order.order_id} is {order.goods} for {order.amount}; it is {order.state}."


@tool
async def refund_order(order_id: str) -> str:
    """Give the money for an order back, after a person has agreed.

    Args:
        order_id: The order's id.
    """
    # The amount is the order's own and not the model's: whatever is repeated, it is the same refund.
    order = orders.find(order_id)
    answer = interrupt(
        {
            "action": "refund",
            "order_id": order.order_id,
            "amount": order.amount,
            "question": f"Give {order.amount} back for order {order.order_id} ({order.goods})?",
        }
    )
    if not approves(answer):
        return f"The refund of order {order.order_id} was declined."
    receipt = await effect("refund", client.refund, order_id=order.order_id, amount=order.amount)
    return f"Order {order.order_id} was refunded: {order.amount} is on its way back, receipt {receipt['id']}."


def approves(answer: Any) -> bool:
    """Tells whether a resume value agrees: true, "yes" or {"approved": true}; everything else declines."""
    match answer:
        case bool():
            return answer
        case str():
            return answer.strip().lower() == "yes"
        case {"approved": True}:
            return True
        case _:
            return False
