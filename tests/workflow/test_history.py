"""What a turn leaves in Temporal: one activity an effect, ids only, and the same size whatever was said (I2)."""

from __future__ import annotations

import json
import uuid
from typing import Any

from langgraph.graph import START, MessagesState, StateGraph
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory

from tests.graphs.shapes import inline_nodes, nested_subgraph, send_to_many
from tests.servers import Postgres
from tests.stack import Stack, stack
from tests.workflow.resets import closed


def _size(history: WorkflowHistory) -> int:
    """Returns the size without workflow tasks: they carry nothing, and how many a turn takes depends on timing."""
    return sum(
        len(event.SerializeToString())
        for event in history.events
        if not EventType.Name(event.event_type).startswith("EVENT_TYPE_WORKFLOW_TASK_")
    )


def _chat() -> Any:
    async def reply(state: MessagesState) -> Any:
        return {"messages": [{"role": "assistant", "content": "SECRET-ANSWER " * 100}]}

    async def fails(state: MessagesState) -> Any:
        if "fail" in str(state["messages"][-2].content):
            raise ValueError(f"SECRET-ERROR about {state['messages'][0].content}")
        return {}

    builder = StateGraph(MessagesState)
    builder.add_node("reply", reply).add_node("fails", fails)
    builder.add_edge(START, "reply").add_edge("reply", "fails")
    return builder.compile()


async def test_each_effect_is_one_activity_named_after_its_node(postgres: Postgres, temporal: str) -> None:
    graphs = {"inline": inline_nodes(), "nested": nested_subgraph(), "send": send_to_many()}
    async with stack(postgres.clone(), temporal, graphs) as running:
        seen = {}
        for name, given in (("inline", {}), ("nested", {}), ("send", {"n": 3})):
            thread = str(uuid.uuid4())
            await running.turn(name, thread=thread, input={"trail": [], **given})
            seen[name] = await running.activities(thread)

        # A turn begins in its first effect's activity, if its graph leads to one and no other.
        assert seen["inline"] == ["turn:begin", "b", "d"]
        assert seen["nested"] == ["a", "x", "y", "b"]
        assert seen["send"] == ["plan", "work", "work", "work", "turn:advance", "sum"]


async def test_activities_are_labelled_with_their_place(postgres: Postgres, temporal: str) -> None:
    async with stack(postgres.clone(), temporal, {"graph": nested_subgraph()}) as running:
        thread = str(uuid.uuid4())
        await running.turn(thread=thread, input={"trail": []})
        history = await running.history(thread)

        labels = [
            json.loads(e.user_metadata.summary.data)
            for e in history.events
            if e.HasField("activity_task_scheduled_event_attributes")
        ]
        assert labels == ["a", "child/x", "child/y", "b"]


async def test_nothing_said_is_in_the_history(postgres: Postgres, temporal: str) -> None:
    async with stack(postgres.clone(), temporal, {"graph": _chat()}) as running:
        for text in ("SECRET-QUESTION", "SECRET-QUESTION fail"):
            thread = str(uuid.uuid4())
            row = await running.turn(thread=thread, input={"messages": [("user", text)]})
            history = await running.history(thread)

            assert row["status"] == ("error" if "fail" in text else "success")
            assert "SECRET" not in history.to_json()
            assert b"SECRET" not in b"".join(e.SerializeToString() for e in history.events)


async def test_history_has_the_same_size_with_400_messages(postgres: Postgres, temporal: str) -> None:
    async with stack(postgres.clone(), temporal, {"graph": _chat()}) as running:
        sizes = [await _turn_size(running, [("user", "x" * 2048)] * count) for count in (1, 400)]

        assert abs(sizes[1] - sizes[0]) <= 0.05 * sizes[0], sizes


async def _turn_size(running: Stack, said: list[tuple[str, str]]) -> int:
    thread = str(uuid.uuid4())
    await running.turn(thread=thread, input={"messages": said})
    await closed(running, thread)
    return _size(await running.history(thread))
