# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""Workflows around Temporal's LangGraph plugin, as its documentation shows them; state lives in them alone."""

from __future__ import annotations

from typing import Any

from temporalio import workflow
from temporalio.contrib.workflow_streams import WorkflowStream
from temporalio.langgraph import graph


def _user(content: str) -> dict[str, str]:
    return {"role": "user", "content": content}


async def _turn(name: str, state: dict[str, Any], content: str) -> dict[str, Any]:
    state = {"messages": [*state["messages"], _user(content)], "steps": state["steps"]}
    return await graph(name).compile().ainvoke(state)


def _answer(state: dict[str, Any]) -> dict[str, Any]:
    # Not the whole state, which would be in the history once more.
    return {"steps": state["steps"], "message": state["messages"][-1]}


@workflow.defn
class Turn:
    """A conversation of one turn."""

    @workflow.run
    async def run(self, name: str, content: str) -> dict[str, Any]:
        """Runs the turn."""
        return _answer(await _turn(name, {"messages": [], "steps": 0}, content))


@workflow.defn
class Conversation:
    """A conversation that goes on: each turn is an update.

    The messages that are there already are made here, so that having them costs the history nothing.
    """

    @workflow.init
    def __init__(self, messages: int, size: int) -> None:
        self.state: dict[str, Any] = {"messages": [_user("x" * size) for _ in range(messages)], "steps": 0}

    @workflow.run
    async def run(self, messages: int, size: int) -> None:
        """Waits for turns."""
        await workflow.wait_condition(lambda: False)

    @workflow.update
    async def turn(self, name: str, content: str) -> dict[str, Any]:
        """Runs a turn."""
        self.state = await _turn(name, self.state, content)
        return _answer(self.state)


@workflow.defn
class Streamed:
    """A conversation of one turn, whose nodes' tokens can be followed."""

    @workflow.init
    def __init__(self, name: str, content: str) -> None:
        self.stream = WorkflowStream()

    @workflow.run
    async def run(self, name: str, content: str) -> dict[str, Any]:
        """Runs the turn."""
        return _answer(await _turn(name, {"messages": [], "steps": 0}, content))
