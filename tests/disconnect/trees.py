"""Owns the reading of a thread's checkpoints: its lineage, its forks, and what they say was booked."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

from tests.disconnect.client import AMOUNT

_ANSWER = re.compile(rf"Booked (\S+) for {AMOUNT}\.")


@dataclass(frozen=True)
class Tree:
    """A thread's checkpoints by id."""

    checkpoints: dict[str, CheckpointTuple]

    @property
    def forked(self) -> bool:
        """Whether a checkpoint has two children (or there are two first ones)."""
        return any(count > 1 for count in Counter(map(_parent, self.checkpoints.values())).values())

    def lineage(self) -> list[CheckpointTuple]:
        """Returns the checkpoints from the thread's head, which is the newest, back to its first."""
        found: list[CheckpointTuple] = []
        at = max(self.checkpoints, default=None)
        while at is not None:
            found.append(self.checkpoints[at])
            at = _parent(found[-1])
        return found

    def receipts(self) -> set[str]:
        """Returns the charges that a state of the lineage holds."""
        states = (one.checkpoint["channel_values"] for one in self.lineage())
        return {state["charge"]["id"] for state in states if state.get("charge")}

    def pending_receipts(self) -> set[str]:
        """Returns the charges that were written down at a checkpoint of the lineage, applied or not.

        A message that comes before they are applied makes LangGraph go on without them.
        """
        writes = (write for one in self.lineage() for write in one.pending_writes or ())
        return {value["id"] for _, channel, value in writes if channel == "charge" and value}

    def history(self) -> list[str]:
        """Returns the bookings that the conversation says are made, in its order."""
        return _answers(self.lineage()[0]) if self.checkpoints else []

    def completed(self) -> set[str]:
        """Returns the bookings whose turn came to its end, on whatever branch."""
        return {booking for one in self.checkpoints.values() for booking in _answers(one)}


async def read_tree(saver: AsyncPostgresSaver, thread: str) -> Tree:
    """Reads all checkpoints of a thread, whatever branch they are on."""
    config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    return Tree({one.checkpoint["id"]: one async for one in saver.alist(config)})


def _parent(one: CheckpointTuple) -> str | None:
    config = one.parent_config or {}
    return config.get("configurable", {}).get("checkpoint_id")


def _answers(one: CheckpointTuple) -> list[str]:
    messages: list[Any] = one.checkpoint["channel_values"].get("messages", [])
    return [said[1] for m in messages if m.type == "ai" and (said := _ANSWER.match(m.text))]
