"""Workflow code that reaches for LangGraph fails, at the top of a module and inside a function alike (I1)."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.worker import Worker

from tests.workflow.reaches import Reaches
from tests.workflow.reaches_at_the_top import ReachesAtTheTop
from tests.workflow.sandbox import sandbox


@pytest.mark.parametrize(
    "module", ["langgraph.graph", "langchain_core.messages", "psycopg", "adapter.engine"]
)
async def test_lazy_imports_are_refused(temporal: str, module: str) -> None:
    client = await Client.connect(temporal)
    queue = str(uuid.uuid4())
    async with Worker(
        client,
        task_queue=queue,
        workflows=[Reaches],
        workflow_runner=sandbox(),
        workflow_failure_exception_types=[Exception],
    ):
        with pytest.raises(WorkflowFailureError) as caught:
            await client.execute_workflow(
                "Reaches", module, id=queue, task_queue=queue, execution_timeout=timedelta(seconds=20)
            )

    assert "RestrictedWorkflowAccessError" in repr(caught.value.cause) or "Cannot access" in str(
        caught.value.cause
    )


async def test_the_same_workflow_may_import_the_standard_library(temporal: str) -> None:
    client = await Client.connect(temporal)
    queue = str(uuid.uuid4())
    async with Worker(client, task_queue=queue, workflows=[Reaches], workflow_runner=sandbox()):
        await client.execute_workflow("Reaches", "json", id=queue, task_queue=queue)


async def test_imports_at_the_top_of_a_workflow_module_are_refused(temporal: str) -> None:
    client = await Client.connect(temporal)
    with pytest.raises(RuntimeError, match="Failed validating workflow") as caught:
        Worker(client, task_queue="q", workflows=[ReachesAtTheTop], workflow_runner=sandbox())

    assert "Cannot access langgraph" in repr(caught.value.__cause__)
