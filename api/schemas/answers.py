"""What the routes answer with, for the OpenAPI document; `api/shapes.py` makes it. Next: `api/answers.py`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import WithJsonSchema
from typing_extensions import TypedDict

from api.schemas.threads import Strategy, ThreadStatus

Uuid = Annotated[str, WithJsonSchema({"type": "string", "format": "uuid"})]
When = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
RunStatus = Literal["pending", "running", "success", "error", "timeout", "interrupted"]
JsonObject = dict[str, Any]


class Refusal(TypedDict):
    """Why a request was not carried out, in one line."""

    detail: str


# ------------------------------------------------------------ system


class Ok(TypedDict):
    """The server runs."""

    ok: bool
    services: JsonObject


class Info(TypedDict):
    """Versions, and what this server can do."""

    version: str
    langgraph_py_version: str
    flags: dict[str, bool]
    host: JsonObject


class Started(TypedDict):
    """The process has loaded its graphs."""

    ok: bool
    graphs: list[str]


class Healthy(TypedDict):
    """The process answers."""

    ok: bool


# ------------------------------------------------------------ threads


class Interrupt(TypedDict):
    """A question that waits for an answer."""

    id: str
    value: Any


class Lifetime(TypedDict):
    """When a thread ends, and how."""

    strategy: Strategy
    ttl_minutes: float
    expires_at: When


class Thread(TypedDict):
    """A conversation. `error` and `interrupts`, by task, are there once a run has ended or the state was edited."""

    thread_id: Uuid
    created_at: When
    updated_at: When
    state_updated_at: When
    metadata: JsonObject
    status: ThreadStatus
    config: JsonObject
    values: Any
    error: NotRequired[Any]
    interrupts: NotRequired[dict[str, list[Interrupt]]]
    ttl: NotRequired[Lifetime]
    extracted: NotRequired[JsonObject]


class Pruned(TypedDict):
    """How many threads were pruned."""

    pruned_count: int


class Effect(TypedDict):
    """An entry of the journal."""

    key: str
    thread_id: Uuid
    run_id: Uuid
    name: str
    node: str
    mode: str
    state: str
    attempts: int
    compensations: int
    error: Any
    unsettled: bool
    started_at: When
    updated_at: When


class Abandoned(TypedDict):
    """A thread whose last run failed or was cancelled, with what that run had done."""

    thread_id: Uuid
    run_id: Uuid
    status: RunStatus
    error: Any
    ended_at: When
    effects: list[JsonObject]


class Activity(TypedDict):
    """An attempt under way."""

    node: str
    label: str
    attempt: int
    last_error: str | None


class Progress(TypedDict):
    """How far a thread's run is; `done` and `interrupted` are null when no worker answers."""

    thread_id: Uuid
    status: ThreadStatus
    run_id: Uuid | None
    running: list[Activity]
    done: list[str] | None
    interrupted: int | None
    queue: list[Uuid]


# ------------------------------------------------------------ states


class CheckpointAddress(TypedDict):
    """A checkpoint's address."""

    thread_id: NotRequired[str]
    checkpoint_ns: NotRequired[str]
    checkpoint_id: NotRequired[str]
    checkpoint_map: NotRequired[JsonObject | None]


class Task(TypedDict):
    """What runs next, or stopped; `state` is that of a subgraph, if asked for."""

    id: str
    name: str
    path: list[Any]
    error: str | None
    interrupts: list[Interrupt]
    checkpoint: CheckpointAddress | None
    state: ThreadState | None
    result: Any


class ThreadState(TypedDict):
    """The state at a checkpoint; before there is one, all is empty."""

    values: Any
    next: list[str]
    tasks: list[Task]
    metadata: JsonObject | None
    created_at: When | None
    checkpoint: CheckpointAddress | None
    parent_checkpoint: CheckpointAddress | None
    interrupts: list[Interrupt]
    checkpoint_id: str | None
    parent_checkpoint_id: str | None


class Edited(TypedDict):
    """The checkpoint that an edit made."""

    checkpoint: CheckpointAddress
    configurable: CheckpointAddress
    checkpoint_id: str | None


# ------------------------------------------------------------ runs


class RunKwargs(TypedDict):
    """What a run was asked to do."""

    input: Any
    command: JsonObject | None
    config: JsonObject
    context: JsonObject
    stream_mode: list[str]
    interrupt_before: Literal["*"] | list[str] | None
    interrupt_after: Literal["*"] | list[str] | None
    webhook: str | None
    feedback_keys: list[str] | None
    temporary: bool
    subgraphs: bool
    resumable: bool
    checkpoint_during: bool
    durability: Literal["sync", "async", "exit"]


class Run(TypedDict):
    """A turn of a conversation."""

    run_id: Uuid
    thread_id: Uuid
    assistant_id: Uuid
    metadata: JsonObject
    status: RunStatus
    kwargs: RunKwargs
    multitask_strategy: Literal["reject", "rollback", "interrupt", "enqueue"]
    created_at: When
    updated_at: When
    langsmith_session_name: None


# ------------------------------------------------------------ assistants


class AssistantVersion(TypedDict):
    """A version of an assistant."""

    assistant_id: Uuid
    graph_id: str
    config: JsonObject
    context: JsonObject
    metadata: JsonObject
    name: str
    created_at: When
    version: int
    description: str | None


class Assistant(AssistantVersion):
    """A graph with a configuration of its own."""

    updated_at: When


class DrawnNode(TypedDict):
    """A node of a drawing."""

    id: str
    type: NotRequired[str]
    data: NotRequired[JsonObject]


class DrawnEdge(TypedDict):
    """An edge of a drawing."""

    source: str
    target: str
    data: NotRequired[Any]
    conditional: NotRequired[bool]


class Drawing(TypedDict):
    """A graph to look at."""

    nodes: list[DrawnNode]
    edges: list[DrawnEdge]


class SubgraphSchemas(TypedDict):
    """JSON Schemas of a graph; null where its types have none."""

    input_schema: JsonObject | None
    output_schema: JsonObject | None
    state_schema: JsonObject | None
    config_schema: JsonObject | None
    context_schema: JsonObject | None


class GraphSchemas(SubgraphSchemas):
    """The same of an assistant's graph."""

    graph_id: str


# ------------------------------------------------------------ store


class Item(TypedDict):
    """A value under its key."""

    namespace: list[str]
    key: str
    value: JsonObject
    created_at: When
    updated_at: When


class FoundItem(Item):
    """One that was searched for."""

    score: float | None


class FoundItems(TypedDict):
    """What a search found."""

    items: list[FoundItem]


class FoundNamespaces(TypedDict):
    """Namespaces that hold items."""

    namespaces: list[list[str]]
