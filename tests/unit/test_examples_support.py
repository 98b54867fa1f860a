"""The support agent under plain LangGraph, loaded by its path: scripted model, real provider process."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import httpx
import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

sys.path.insert(0, str(Path(__file__).parents[2] / "deploy" / "examples"))

from deploy.examples.booking.provider_process import start
from deploy.examples.support.model import ScriptedChatModel, chat_model
from deploy.examples.support.orders import find

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
    monkeypatch.setenv("SUPPORT_TOKEN_DELAY", "0.001")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    spec = importlib.util.spec_from_file_location("support_example", EXAMPLES / "support" / "graph.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return cast("Graph", module.graph).copy({"checkpointer": InMemorySaver()})


@pytest.fixture
def config() -> RunnableConfig:
    return {"configurable": {"thread_id": uuid4().hex}}


def say(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def refunds(url: str, order_id: str) -> list[int]:
    ledger = httpx.get(f"{url}/ledger", trust_env=False).json()
    parameters = [effect["parameters"] for effect in ledger["effects"]]
    return [found["amount"] for found in parameters if found["order_id"] == order_id]


async def test_an_answer_is_streamed_token_by_token(graph: Graph, config: RunnableConfig):
    chunks: list[AIMessageChunk] = []
    async for message, _ in graph.astream(say("hello"), config, stream_mode="messages"):
        assert isinstance(message, AIMessageChunk)
        chunks.append(message)
    final = (await graph.aget_state(config)).values["messages"][-1]

    assert len([chunk for chunk in chunks if chunk.text]) > 30
    assert "".join(chunk.text for chunk in chunks) == final.text
    assert {chunk.id for chunk in chunks} == {final.id}
    assert final.usage_metadata["output_tokens"] == len([chunk for chunk in chunks if chunk.text])
    assert final.response_metadata["model_name"] == "scripted"


async def test_an_order_is_looked_up(graph: Graph, config: RunnableConfig):
    state = await graph.ainvoke(say("Where is order 7?"), config)
    kinds = [message.type for message in state["messages"]]

    assert kinds == ["human", "ai", "tool", "ai"]
    (call,) = state["messages"][1].tool_calls
    assert (call["name"], call["args"]) == ("lookup_order", {"order_id": "7"})
    assert find("7").goods in state["messages"][-1].text


@pytest.mark.parametrize("answer", [True, "yes", "Yes ", {"approved": True}])
async def test_an_approved_refund_is_paid_once(
    graph: Graph, config: RunnableConfig, provider_url: str, answer: Any
):
    order_id = f"{uuid4().int}"
    state = await graph.ainvoke(say(f"refund order {order_id}"), config)
    (question,) = state["__interrupt__"]
    assert question.value["amount"] == find(order_id).amount
    assert refunds(provider_url, order_id) == []

    state = await graph.ainvoke(Command(resume=answer), config)
    assert "was refunded" in state["messages"][-1].text
    assert refunds(provider_url, order_id) == [find(order_id).amount]


@pytest.mark.parametrize("answer", [False, "no", None, 1, {"approved": False}, {"approved": "yes"}, []])
async def test_anything_else_declines(graph: Graph, config: RunnableConfig, provider_url: str, answer: Any):
    order_id = f"{uuid4().int}"
    (question,) = (await graph.ainvoke(say(f"refund order {order_id}"), config))["__interrupt__"]
    # By the interrupt's id: plain LangGraph takes a bare None for no answer at all.
    state = await graph.ainvoke(Command(resume={question.id: answer}), config)

    assert "was declined" in state["messages"][-1].text
    assert refunds(provider_url, order_id) == []


async def test_a_refund_may_name_its_order_earlier(graph: Graph, config: RunnableConfig):
    await graph.ainvoke(say("where is order A-12?"), config)
    state = await graph.ainvoke(say("then I want a refund"), config)
    assert state["__interrupt__"][0].value["order_id"] == "A-12"


async def test_a_refund_of_nothing_asks_which(graph: Graph, config: RunnableConfig):
    state = await graph.ainvoke(say("I want a refund"), config)
    assert "Which order" in state["messages"][-1].text


async def test_the_same_conversation_gets_the_same_message():
    model = ScriptedChatModel(token_delay=0).bind_tools(
        [{"name": "lookup_order", "description": "", "parameters": {}}]
    )
    conversation: list[BaseMessage] = [HumanMessage("order 7", id="one")]
    first = await model.ainvoke(conversation)
    again = model.invoke([HumanMessage("order 7", id="another")])
    other = await model.ainvoke([HumanMessage("order 8")])

    assert isinstance(first, AIMessage)
    assert (first.id, first.tool_calls) == (again.id, again.tool_calls)
    assert first.tool_calls[0]["id"] != other.tool_calls[0]["id"]
    assert first.id != other.id


async def test_without_tools_it_only_talks():
    answer = await ScriptedChatModel(token_delay=0).ainvoke("order 7")
    assert answer.tool_calls == []
    assert answer.text


def test_a_key_chooses_the_real_model(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("SUPPORT_MODEL", "some-model")
    described = chat_model().model_dump()

    assert described["model_name"] == "some-model"
    assert described["openai_api_base"] == "http://127.0.0.1:9/v1"
    assert described["streaming"] is True
