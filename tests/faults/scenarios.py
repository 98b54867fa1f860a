"""What a cell of the fault matrix plays: a graph of `tests/project/acting.py`, its turns, what is done meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowExecutionStatus

from tests.api.serving import Serving
from tests.processes import Faulty
from workflows import names


@dataclass(frozen=True)
class Play:
    """One playing of a scenario.

    Attributes:
        it: the workers and the provider.
        api: the API.
        thread: a fresh thread, which also marks what the provider is asked for.
        gate: a file that is not there yet.
    """

    it: Faulty
    api: Serving
    thread: str
    gate: Path

    def acted(self, what: str = "effects") -> list[dict[str, Any]]:
        """Returns the provider's effects, or attempts, that this thread made."""
        entries = self.it.ledger()[what]
        return [e for e in entries if any(str(v).startswith(self.thread) for v in e["parameters"].values())]

    async def attempted_again(self) -> None:
        """Waits until Temporal has given an attempt of the thread up and schedules the next one."""
        handle = self.it.stack.client.get_workflow_handle(names.workflow_id(self.thread))
        async with asyncio.timeout(60):
            while True:
                pending = (await handle.describe()).raw_description.pending_activities
                if any(activity.attempt > 1 for activity in pending):
                    return
                await asyncio.sleep(0.05)

    async def closed(self) -> None:
        """Waits until the thread's workflow has nothing more to do."""
        handle = self.it.stack.client.get_workflow_handle(names.workflow_id(self.thread))
        async with asyncio.timeout(60):
            while (await handle.describe()).status is WorkflowExecutionStatus.RUNNING:
                await asyncio.sleep(0.02)


Meanwhile = Callable[[Play, str], Awaitable[None]]


@dataclass(frozen=True)
class Scenario:
    """A graph and its turns.

    Attributes:
        graph: its name in the project.
        turns: what is in each request beside what all have; "input" gets the thread's mark and gate.
        statuses: how the turns end.
        at_once: whether all turns are sent before the first one ends.
        meanwhile: what is done once the turns are sent; gets the first one's run id.
    """

    graph: str
    turns: tuple[Mapping[str, Any], ...] = ({"input": {}},)
    statuses: tuple[str, ...] = ("success",)
    at_once: bool = False
    meanwhile: Meanwhile | None = None


async def _cancel(play: Play, run: str) -> None:
    """Cancels the turn once its second node has acted."""
    while len(play.acted()) < 2:
        await asyncio.sleep(0.05)
    answered = await play.api.http.post(f"/threads/{play.thread}/runs/{run}/cancel")
    assert answered.status_code < 300, answered.text


async def _open_gate(play: Play, run: str) -> None:
    play.gate.touch()


SCENARIOS: dict[str, Scenario] = {
    "sequence": Scenario("sequence"),
    "fan-out": Scenario("fan_out"),
    "nested": Scenario("nested"),
    "resumed": Scenario("asking", ({"input": {}}, {"command": {"resume": "Yes."}}), ("success", "success")),
    "cancelled": Scenario("holding", statuses=("interrupted",), meanwhile=_cancel),
    "failed, one queued": Scenario(
        "failing",
        ({"input": {"fail": True}}, {"input": {"fail": False}}),
        ("error", "success"),
        at_once=True,
        meanwhile=_open_gate,
    ),
    "taken back": Scenario("taking_back", ({"input": {"fail": True}},), ("error",), meanwhile=_open_gate),
}
