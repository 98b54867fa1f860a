"""Turns of a thread run one after the other, in the order they were accepted (I3)."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from langchain_core.runnables import RunnableConfig
from temporalio.client import WorkflowExecutionStatus

from tests.graphs.shapes import linear
from tests.graphs.slow import Switch, failing, waiting
from tests.servers import Postgres
from tests.stack import Stack, stack
from workflows import names
from workflows.contracts import Progress


@pytest.mark.slow
async def test_turns_run_in_the_order_they_were_accepted(postgres: Postgres, temporal: str) -> None:
    async with stack(postgres.clone(), temporal, {"graph": linear()}) as running:
        thread = str(uuid.uuid4())
        submits = [running.submit(thread=thread, input={"trail": [str(i)]}) for i in range(20)]
        turns = await asyncio.gather(*submits)
        rows = [await running.ended(turn) for turn in turns]

        by_acceptance = [row["request"]["input"]["trail"][0] for row in sorted(rows, key=lambda r: r["seq"])]
        state = await running.state("graph", thread)
        assert [word for word in state.values["trail"] if word not in "abc"] == by_acceptance
        assert len(by_acceptance) == 20
        await _one_lineage(running, thread)


async def _one_lineage(running: Stack, thread: str) -> None:
    async with running.project.plain("graph") as graph:
        from adapter._pregel import copy_graph
        from adapter.saver import FencedSaver

        reading = copy_graph(graph, checkpointer=FencedSaver(running.pool))
        config: RunnableConfig = {"configurable": {"thread_id": thread}}
        snapshots = [s async for s in reading.aget_state_history(config)]
    parents = [s.parent_config.get("configurable", {})["checkpoint_id"] for s in snapshots if s.parent_config]
    assert len(parents) == len(set(parents)) == len(snapshots) - 1


async def test_a_failed_turn_hands_its_queue_over(postgres: Postgres, temporal: str) -> None:
    switch = Switch(failures=1)
    async with stack(postgres.clone(), temporal, {"graph": failing(switch)}) as running:
        thread = str(uuid.uuid4())
        turns = [await running.submit(thread=thread, input={"trail": []}) for _ in range(3)]
        switch.go.set()
        rows = [await running.ended(turn) for turn in turns]

        assert [row["status"] for row in rows] == ["error", "success", "success"]
        runs = [
            w.status
            async for w in running.client.list_workflows(f'WorkflowId = "{names.workflow_id(thread)}"')
        ]
        assert WorkflowExecutionStatus.FAILED in runs


async def test_progress_tells_what_runs_and_what_waits(postgres: Postgres, temporal: str) -> None:
    switch = Switch()
    async with stack(postgres.clone(), temporal, {"graph": waiting(switch)}) as running:
        thread = str(uuid.uuid4())
        turns = [await running.submit(thread=thread, input={"trail": []}) for _ in range(2)]
        await switch.started.wait()
        handle = running.client.get_workflow_handle(names.workflow_id(thread))
        progress = await handle.query(names.PROGRESS, result_type=Progress)
        switch.go.set()
        await running.ended(turns[1])

        assert progress == Progress(turns[0], ("wait",), ("first",), 0, (turns[1],))


async def test_the_same_turn_submitted_twice_runs_once(postgres: Postgres, temporal: str) -> None:
    async with stack(postgres.clone(), temporal, {"graph": linear()}) as running:
        thread = str(uuid.uuid4())
        turns = await asyncio.gather(
            *(running.submit(thread=thread, key="k", input={"trail": []}) for _ in range(5))
        )
        await running.ended(turns[0])

        assert len(set(turns)) == 1
        assert (await running.state("graph", thread)).values["trail"] == ["a", "b", "c"]
