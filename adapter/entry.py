"""Owns what an activity asks the engine for, and what it is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from adapter.gate import FrontierEntry, Gate
from adapter.saver import FencedSaver
from adapter.store.claims import Claim


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a turn's graph.

    Attributes:
        claim: the attempt's claim.
        allow: task ids of the effects to run; none to only go on to the next frontier.
        branches: task-id paths the entry is limited to; `((),)` is the whole graph.
        held: tasks that stopped at an interrupt in this turn.
        attempt: the activity's attempt, from 1.
        first: whether this is the turn's begin.
        node: of a begin: the node that the turn starts with, which is run, too.
        again: whether the begin of a failed turn is tried again (Reset).
        run_id: Temporal's run.
        begun_in: its original run, which differs in one that Reset made.
        checkpoint: the thread's head when the step was planned, or None for begin.
        fork: whether to go on from there, leaving what the thread has stored since then behind.
        first_attempt_at: Unix time of the first attempt, if known.
        heartbeat: records progress with Temporal; callable from any thread.
        timeout: seconds after which Temporal may take the attempt for lost, at the earliest; 0 if no other follows it.
    """

    claim: Claim
    allow: tuple[str, ...] = ()
    branches: tuple[tuple[str, ...], ...] = ((),)
    held: tuple[str, ...] = ()
    attempt: int = 1
    first: bool = False
    node: str | None = None
    again: bool = False
    run_id: str = ""
    begun_in: str = ""
    checkpoint: str | None = None
    fork: bool = False
    first_attempt_at: float | None = None
    heartbeat: Callable[[], None] | None = None
    timeout: float = 0.0

    @property
    def whole(self) -> bool:
        """Whether it is limited to no branch."""
        return self.branches == ((),)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an entry found.

    Attributes:
        frontier: effects that want to start; none when the branch has nothing more to run.
        interrupted: tasks that stopped at an interrupt, to be held for the rest of the turn.
        finished: whether the turn is over (its final status is stored).
        checkpoint: the thread's head, which the frontier belongs to.
        moved_on: nothing was run: the thread has moved past the checkpoint that the entry belongs to.
        taken_back: nothing was run: the turn's rollback was not brought to its end.
    """

    frontier: tuple[FrontierEntry, ...] = ()
    interrupted: tuple[str, ...] = ()
    finished: bool = False
    checkpoint: str | None = None
    moved_on: bool = False
    taken_back: bool = False


def found(gate: Gate, saver: FencedSaver) -> Outcome:
    """Returns what an activity tells of a turn that goes on."""
    return Outcome(tuple(gate.frontier.values()), tuple(sorted(gate.interrupted)), checkpoint=saver.root_head)
