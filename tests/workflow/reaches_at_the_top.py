"""A workflow whose module imports LangGraph."""

import langgraph.graph  # noqa: F401
from temporalio import workflow


@workflow.defn(name="ReachesAtTheTop")
class ReachesAtTheTop:
    @workflow.run
    async def run(self) -> None:
        return None
