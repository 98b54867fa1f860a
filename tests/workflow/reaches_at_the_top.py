"""A workflow whose module imports LangGraph."""

import langgraph.graph as langgraph_graph
from temporalio import workflow

__all__ = ["ReachesAtTheTop", "langgraph_graph"]


@workflow.defn(name="ReachesAtTheTop")
class ReachesAtTheTop:
    @workflow.run
    async def run(self) -> None:
        return None
