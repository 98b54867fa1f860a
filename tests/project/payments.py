"""A graph that gives back what it took when it fails."""

from __future__ import annotations

import os
from typing import Any

import httpx
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from adapter.effects import effect


class State(TypedDict, total=False):
    amounts: list[int]
    paid: list[str]


async def _post(path: str, body: dict[str, Any], key: str) -> dict[str, Any]:
    async with httpx.AsyncClient(trust_env=False) as http:
        url = f"{os.environ['BOOKING_PROVIDER_URL']}{path}"
        answered = await http.post(url, json=body, headers={"Idempotency-Key": key})
        return answered.raise_for_status().json()


async def charge(amount: int, *, idempotency_key: str) -> dict[str, Any]:
    return await _post("/charges", {"booking_id": "b", "amount": amount}, idempotency_key)


async def give_back(receipt: dict[str, Any], *, idempotency_key: str) -> None:
    amount = receipt["parameters"]["amount"]
    await _post("/refunds", {"order_id": receipt["id"], "amount": amount}, idempotency_key)


async def pay(state: State) -> Any:
    for amount in state.get("amounts", []):
        await effect("charge", charge, amount, compensate=give_back)
    return {"paid": ["all"]}


async def fail(state: State) -> Any:
    raise ValueError("sold out")


_builder: Any = StateGraph(State)
_builder.add_node("pay", pay).add_node("fail", fail)
_builder.add_edge(START, "pay").add_edge("pay", "fail")
giving_back = _builder.compile()
