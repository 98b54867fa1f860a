"""A workflow that imports what it is told to."""

from temporalio import workflow


@workflow.defn(name="Reaches")
class Reaches:
    @workflow.run
    async def run(self, module: str) -> None:
        __import__(module)
