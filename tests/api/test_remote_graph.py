"""LangGraph's own RemoteGraph uses a served graph as if it were local."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import Command

from tests.api.graphs import asking
from tests.api.serving import fresh, serving


async def test_runs_reads_edits_and_resumes(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"agent": asking()}) as api:
        remote = RemoteGraph("agent", client=api.sdk)
        config: RunnableConfig = {"configurable": {"thread_id": fresh()}}
        drawn = await remote.aget_graph()
        assert {"plan", "ask", "finish"} <= set(drawn.nodes)
        chunks: list[Any] = [
            chunk async for chunk in remote.astream({"trail": []}, config, stream_mode="updates")
        ]
        assert chunks[0] == {"plan": {"trail": ["plan"]}} and "__interrupt__" in chunks[-1]
        state = await remote.aget_state(config)
        assert (state.next, state.values) == (("ask",), {"trail": ["plan"]})
        history = [snapshot async for snapshot in remote.aget_state_history(config)]
        assert [snapshot.next for snapshot in history] == [("ask",), ("plan",), ("__start__",)]
        done = await remote.ainvoke(Command(resume="yes"), config)
        assert done == {"trail": ["plan", "ask", "finish"], "answer": "yes"}
        edited = await remote.aupdate_state(config, {"trail": ["edited"]}, as_node="ask")
        state = await remote.aget_state(config)
        assert (state.next, state.config.get("configurable")) == (("finish",), edited.get("configurable"))
        done = await remote.ainvoke(None, config)
        assert done["trail"] == ["plan", "ask", "finish", "edited", "finish"]
