"""LangGraph's own RemoteGraph uses a served graph as if it were local."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import Command

from tests.api.graphs import State, asking, steps
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


async def test_as_a_subgraph(database_url: str, temporal: str) -> None:
    """A local graph has a served one as a node: it streams from inside of it and stops at its question.

    LangGraph's RemoteGraph takes no answer as a subgraph (it would ask again): the answer goes to the served graph, and
    the local one goes on from there.
    """
    async with serving(database_url, temporal, {"agent": asking(), "quick": steps("a", "b")}) as api:
        config: RunnableConfig = {"configurable": {"thread_id": fresh()}}
        graph = _around(RemoteGraph("quick", client=api.sdk))
        told = [
            one async for one in graph.astream({"trail": []}, config, stream_mode="updates", subgraphs=True)
        ]
        assert [update for ns, update in told if ns] == [{"a": {"trail": ["a"]}}, {"b": {"trail": ["b"]}}]
        assert [next(iter(update)) for ns, update in told if not ns] == ["remote", "local"]
        assert (await graph.aget_state(config)).values == {"trail": ["a", "b", "local"]}

        config = {"configurable": {"thread_id": fresh()}}
        asks = RemoteGraph("agent", client=api.sdk)
        graph = _around(asks)
        told = [
            one async for one in graph.astream({"trail": []}, config, stream_mode="updates", subgraphs=True)
        ]
        assert next(update for ns, update in told if ns) == {"plan": {"trail": ["plan"]}}
        (question,) = (await graph.aget_state(config)).interrupts
        assert question.value == {"question": "Proceed?"}
        assert told[-1] == ((), {"__interrupt__": (question,)})

        answered = await asks.ainvoke(Command(resume="yes"), config)
        assert answered == {"trail": ["plan", "ask", "finish"], "answer": "yes"}
        await graph.aupdate_state(config, answered, as_node="remote")
        done = await graph.ainvoke(None, config)
        assert done == {"trail": ["plan", "ask", "finish", "local"], "answer": "yes"}


def _around(remote: RemoteGraph) -> Any:
    builder = StateGraph(State)
    builder.add_node("remote", remote)
    builder.add_node("local", _local)
    builder.add_edge(START, "remote").add_edge("remote", "local")
    return builder.compile(checkpointer=InMemorySaver())


async def _local(state: State) -> Any:
    return {"trail": ["local"]}
