"""Owns what crosses the boundary between workflow, activities and clients: frozen dataclasses of ids and small facts.

No message, state or input is in any of them, so a turn's history has the same size whatever its conversation holds
(I2). Field names are stored in histories: renaming one breaks runs in flight.

Annotations are evaluated here: Temporal's converter would evaluate them anew for every value that it reads.
"""

from dataclasses import dataclass, field

TaskPath = tuple[str, ...]
Options = dict[str, float | int | str]


@dataclass(frozen=True)
class Defaults:
    """How activities run when their node does not say otherwise.

    Attributes:
        hb: heartbeat timeout, seconds.
        stc: start-to-close timeout, seconds.
        attempts: attempts of an activity whose worker is lost.
        parallel: activities one superstep is split into, at most.
    """

    hb: float = 30.0
    stc: float = 86_400.0
    attempts: int = 20
    parallel: int = 100


@dataclass(frozen=True)
class First:
    """The effect that a turn starts with, if its graph says so beforehand: it begins the turn in its own activity.

    Attributes:
        node: the node's name.
        options: as an `Effect` has them.
    """

    node: str
    options: Options = field(default_factory=dict[str, float | int | str])


@dataclass(frozen=True)
class Queued:
    """A turn that waits for its run.

    Attributes:
        turn_id: the turn.
        seq: its place in the thread's order of acceptance.
        hook: whether somebody wants to be called when it has ended.
        first: what it starts with, if that is known.
    """

    turn_id: str
    seq: int
    hook: bool = False
    first: First | None = None


@dataclass(frozen=True)
class Submit:
    """Argument of the `submit` update.

    Attributes:
        turn: the turn, whose row is stored.
        cut_in: whether it stops the running turn instead of waiting for it.
        roll_back: whether what the running turn did to the thread is taken back, too; without `cut_in`, that the turn
            itself is taken back, whose run is gone.
    """

    turn: Queued
    cut_in: bool = False
    roll_back: bool = False


@dataclass(frozen=True)
class Submitted:
    """Result of the `submit` update.

    Attributes:
        ahead: turns that run before it.
    """

    ahead: int


@dataclass(frozen=True)
class Effect:
    """An effect that wants to start.

    Attributes:
        id: LangGraph's task id.
        node: the node's name, which is its activity's type.
        within: task ids of the subgraph nodes around it, from the root down.
        label: its place as a person reads it.
        options: what its activity needs beyond the defaults: `hb`, `stc`, `attempts`, `queue`.
    """

    id: str
    node: str
    within: TaskPath = ()
    label: str = ""
    options: Options = field(default_factory=dict[str, float | int | str])

    @property
    def path(self) -> TaskPath:
        """Task ids from the root down to the effect itself."""
        return (*self.within, self.id)


@dataclass(frozen=True)
class Step:
    """Argument of begin, of a node's activity and of advance.

    Attributes:
        allow: task ids of the effects to run.
        branches: task-id paths the step is limited to; none is the whole graph.
        held: tasks that stopped at an interrupt in this turn.
        again: whether the turn failed before and this run, made by Reset, tries it again.
        begun_in: for begin: the original run of this run, which Reset keeps.
        checkpoint: the thread's latest checkpoint when the step was found to be next; None for begin.
        fork: whether to go on from there although the thread has moved on.
        first: the node that the turn starts with, which this begin runs, too.
    """

    thread_id: str
    turn_id: str
    allow: tuple[str, ...] = ()
    branches: tuple[TaskPath, ...] = ()
    held: tuple[str, ...] = ()
    again: bool = False
    begun_in: str = ""
    checkpoint: str | None = None
    fork: bool = False
    first: str | None = None


@dataclass(frozen=True)
class Stepped:
    """Result of a step.

    Attributes:
        frontier: effects that want to start next.
        interrupted: tasks that stopped at an interrupt.
        finished: whether the turn's final status is stored.
        older: from begin: a turn that was accepted before this one and has not ended; it goes first.
        checkpoint: the thread's latest checkpoint, which the frontier belongs to.
        moved_on: nothing was run: this run was made by Reset, and the thread is not where the step belongs.
        taken_back: nothing was run: the turn's rollback was not brought to its end, and is to be.
        gone: nothing was run: the turn was deleted, or had ended.
    """

    frontier: tuple[Effect, ...] = ()
    interrupted: tuple[str, ...] = ()
    finished: bool = False
    older: Queued | None = None
    checkpoint: str | None = None
    moved_on: bool = False
    taken_back: bool = False
    gone: bool = False


@dataclass(frozen=True)
class Going:
    """A turn whose run grew long and goes on in the next one.

    Attributes:
        turn: the turn.
        last: what its last step found.
        held: tasks that stopped at an interrupt.
    """

    turn: Queued
    last: Stepped
    held: tuple[str, ...] = ()


@dataclass(frozen=True)
class TurnInput:
    """Argument of the turn workflow; `queue` is empty when the first turn comes with the starting update."""

    thread_id: str
    queue: tuple[Queued, ...] = ()
    defaults: Defaults = field(default_factory=Defaults)
    going: Going | None = None


@dataclass(frozen=True)
class Finish:
    """Argument of the finish activity: stores that a turn was stopped.

    Attributes:
        roll_back: whether the turn is taken back: its row and its checkpoints go.
    """

    thread_id: str
    turn_id: str
    roll_back: bool = False


@dataclass(frozen=True)
class Compensate:
    """Argument of the compensate activity: undoes finished effects, the last first.

    Attributes:
        continued: whether effects of the turns that this one continued are undone, too.
    """

    thread_id: str
    turn_id: str
    continued: bool


@dataclass(frozen=True)
class Failure:
    """Argument of the record_failure activity.

    Attributes:
        kind: the error type the workflow saw, for a failure that no attempt could store itself.
        node: the node's label, or the activity's name.
    """

    thread_id: str
    turn_id: str
    kind: str
    node: str


@dataclass(frozen=True)
class Recorded:
    """Result of the record_failure activity.

    Attributes:
        run_id: the run that failed.
        compensate: whether there are effects to undo.
    """

    run_id: str
    compensate: bool = False


@dataclass(frozen=True)
class HandOver:
    """Argument of the hand-over workflow: turns that wait while the run they waited for fails.

    Attributes:
        orphans: whether open turns of the thread whose run is gone are submitted, too.
    """

    thread_id: str
    run_id: str
    queue: tuple[Queued, ...]
    defaults: Defaults
    orphans: bool = False


@dataclass(frozen=True)
class Delayed:
    """Argument of the delay workflow, whose start Temporal delays: a turn that is due when it runs.

    Attributes:
        cut_in: see `Submit`.
        roll_back: see `Submit`.
    """

    thread_id: str
    turn_id: str
    cut_in: bool
    roll_back: bool
    defaults: Defaults


@dataclass(frozen=True)
class Webhook:
    """Argument of the webhook workflow: a turn whose end somebody wants to be told.

    Attributes:
        started_at: when the turn's run started, Unix time.
        end: names this end of the turn; another one, after a Reset, has another name.
    """

    thread_id: str
    turn_id: str
    started_at: float
    end: str


@dataclass(frozen=True)
class Progress:
    """Result of the `progress` query.

    Attributes:
        turn_id: the running turn, or None.
        running: labels of effects under way.
        done: labels of effects that are done, in the order they ended.
        interrupted: how many tasks wait for an answer.
        queue: turns that wait.
    """

    turn_id: str | None
    running: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    interrupted: int = 0
    queue: tuple[str, ...] = ()
