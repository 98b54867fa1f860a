"""Shapes of other states than a typed dictionary: functional flows, models, dataclasses, messages, agents."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

from langgraph.func import entrypoint, task
from langgraph.graph import MessagesState
from langgraph.graph.message import add_messages
from langgraph.types import interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

from tests.graphs.calls import called
from tests.graphs.models import scripted_agent
from tests.graphs.table import Graph, chain, node, shape


@shape({"input": 3}, {"input": 4})
def functional_entrypoint() -> Graph:
    @task
    async def double(x: int) -> int:
        called("double")
        return 2 * x

    @task
    def add(x: int, y: int) -> int:
        called("add")
        return x + y

    @entrypoint()
    async def flow(x: int, *, previous: Any = None) -> Any:
        called("flow")
        doubled = [double(i) for i in range(x)]
        total = 0
        for future in doubled:
            total = await add(total, await future)
        return entrypoint.final(value=total, save=(previous or 0) + total)

    return cast("Graph", flow)


@shape({"input": 2}, {"command": {"resume": "yes"}})
def functional_entrypoint_with_interrupt() -> Graph:
    @task
    async def double(x: int) -> int:
        called("double")
        return 2 * x

    @entrypoint()
    async def flow(x: int) -> Any:
        called("flow")
        doubled = await double(x)
        return f"{doubled} {interrupt('ok?')}"

    return cast("Graph", flow)


class Pydantic(BaseModel):
    trail: Annotated[list[str], operator.add] = []
    n: int = 0


@shape({"input": {"trail": ["in"], "n": 1}})
def pydantic_state() -> Graph:
    async def a(state: Pydantic) -> Any:
        called("a")
        return {"trail": ["a"], "n": state.n + 1}

    async def b(state: Pydantic) -> Any:
        called("b")
        return Pydantic(trail=["b"], n=state.n + 1)

    return chain("a", "b", schema=Pydantic, nodes={"a": a, "b": b})


@dataclass
class Data:
    trail: Annotated[list[str], operator.add] = field(default_factory=list[str])
    n: int = 0


@shape({"input": {"trail": ["in"], "n": 1}})
def dataclass_state() -> Graph:
    async def a(state: Data) -> Any:
        called("a")
        return {"trail": ["a"], "n": state.n + 1}

    return chain("a", "b", schema=Data, nodes={"a": a, "b": node("b")})


@shape({"input": {"messages": [{"role": "user", "content": "hi", "id": "m1"}]}})
def messages_state() -> Graph:
    async def reply(state: MessagesState) -> Any:
        called("reply")
        return {"messages": [{"role": "assistant", "content": "hello", "id": "m2"}]}

    return chain("reply", schema=MessagesState, nodes={"reply": reply})


@shape({"input": {"messages": [{"role": "user", "content": "weather", "id": "m1"}]}})
def agent_with_parallel_tools() -> Graph:
    return scripted_agent()


class Talk(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    trail: Annotated[list[str], operator.add]


@shape({"input": {"messages": [{"role": "user", "content": "weather", "id": "m1"}]}})
def agent_as_a_subgraph() -> Graph:
    async def before(state: Talk) -> Any:
        called("before")
        return {"trail": ["before"]}

    return chain("before", "agent", "after", schema=Talk, nodes={
        "before": before, "agent": scripted_agent(), "after": node("after")})  # fmt: skip
