"""Owns the support graph: LangChain's stock agent with this example's model and tools, and nothing else.

It names no checkpointer: whoever runs it brings one.
"""

from __future__ import annotations

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]

from support.model import chat_model
from support.tools import lookup_order, refund_order

SYSTEM_PROMPT = (
    "You are the support assistant of a small shop. Look an order up before you say anything about it. "
    "To give money back, call refund_order; a person is asked before it happens, so do not ask yourself. "
    "Be brief and friendly."
)

graph = create_agent(  # pyright: ignore[reportUnknownVariableType]
    chat_model(), tools=[lookup_order, refund_order], system_prompt=SYSTEM_PROMPT, name="support"
)
