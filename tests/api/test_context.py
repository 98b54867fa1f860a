"""`context` and `config.configurable` stand for each other."""

from __future__ import annotations

from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from tests.api.serving import serving


class Context(TypedDict, total=False):
    lang: str


class State(TypedDict, total=False):
    seen: dict[str, Any]


def _graph() -> Any:
    async def look(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> Any:
        context = runtime.context or {}
        return {"seen": {"context": dict(context), "lang": config.get("configurable", {}).get("lang")}}

    builder = StateGraph(State, context_schema=Context)
    builder.add_node("look", cast("Any", look))
    builder.add_edge(START, "look")
    return builder.compile()


async def test_either_is_both(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"graph": _graph()}) as api:
        seen = {"seen": {"context": {"lang": "en"}, "lang": "en"}}
        ways: list[dict[str, Any]] = [
            {"context": {"lang": "en"}},
            {"config": {"configurable": {"lang": "en", "other": 1}}},
        ]
        for way in ways:
            assert await api.wait(await api.thread(), input={"seen": {}}, **way) == seen
