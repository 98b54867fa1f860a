"""The booking graph under plain LangGraph, loaded by its path, against a real provider process."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import httpx
import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph

sys.path.insert(0, str(Path(__file__).parents[2] / "deploy" / "examples"))

from deploy.examples.booking.provider_process import start

EXAMPLES = Path(__file__).parents[2] / "deploy" / "examples"
Graph = CompiledStateGraph[Any, Any, Any, Any]


@pytest.fixture(scope="module")
def provider_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    provider = start(tmp_path_factory.mktemp("provider") / "ledger.jsonl")
    yield provider.url
    provider.process.kill()
    provider.process.wait()


@pytest.fixture
def graph(provider_url: str, monkeypatch: pytest.MonkeyPatch) -> Graph:
    monkeypatch.setenv("BOOKING_PROVIDER_URL", provider_url)
    spec = importlib.util.spec_from_file_location("booking_example", EXAMPLES / "booking" / "graph.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return cast("Graph", module.graph).copy({"checkpointer": InMemorySaver()})


@pytest.fixture
def config() -> RunnableConfig:
    return {"configurable": {"thread_id": uuid4().hex}}


def effects(url: str, booking_id: str) -> list[str]:
    ledger = httpx.get(f"{url}/ledger", trust_env=False).json()
    return [e["kind"] for e in ledger["effects"] if e["parameters"]["booking_id"] == booking_id]


def say(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


async def test_a_chat_message_books(graph: Graph, config: RunnableConfig, provider_url: str):
    state = await graph.ainvoke(say("Please book room 12 for 80, thanks"), config)

    assert (state["booking_id"], state["amount"]) == ("room-12", 80)
    assert state["charge"]["parameters"] == {"booking_id": "room-12", "amount": 80}
    assert state["notified"]["object"] == "notification"
    answer = state["messages"][-1]
    assert isinstance(answer, AIMessage)
    assert state["charge"]["id"] in answer.text
    assert effects(provider_url, "room-12") == ["charge", "notification"]


async def test_values_book_as_well(graph: Graph, config: RunnableConfig, provider_url: str):
    state = await graph.ainvoke({"booking_id": "b-1", "amount": 80}, config)

    assert [message.type for message in state["messages"]] == ["ai"]
    assert effects(provider_url, "b-1") == ["charge", "notification"]


async def test_every_turn_of_a_thread_is_its_own_booking(
    graph: Graph, config: RunnableConfig, provider_url: str
):
    for _ in range(2):
        await graph.ainvoke({"booking_id": "b-2", "amount": 80}, config)
    state = await graph.ainvoke(say("book room 14 for $95"), config)

    assert state["amount"] == 95
    assert effects(provider_url, "b-2") == ["charge", "notification"] * 2
    assert effects(provider_url, "room-14") == ["charge", "notification"]


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("book the blue room for 2 nights for 300 please", 300),
        ("Book room 3 for €45, for my sister.", 45),
        ("book room 3 for 80.50", None),
        ("book room 3 for 1,200", None),
        ("book room 3 for -80", None),
        ("what does a room cost?", None),
    ],
)
async def test_the_amount_is_read_or_asked_for(
    graph: Graph, config: RunnableConfig, text: str, amount: int | None
):
    state = await graph.ainvoke(say(text), config)
    assert state["amount"] == amount
    assert (state["charge"] is None) == (amount is None)


async def test_a_message_that_asks_for_nothing_pays_nothing(
    graph: Graph, config: RunnableConfig, provider_url: str
):
    await graph.ainvoke(say("book room 16 for 70"), config)
    state = await graph.ainvoke(say("thank you!"), config)

    assert "book room 12 for 80" in state["messages"][-1].text
    assert state["charge"] is None
    assert effects(provider_url, "room-16") == ["charge", "notification"]


async def test_a_message_may_come_with_the_values(graph: Graph, config: RunnableConfig, provider_url: str):
    await graph.ainvoke({**say("the usual, please"), "booking_id": "b-3", "amount": 80}, config)
    assert effects(provider_url, "b-3") == ["charge", "notification"]
