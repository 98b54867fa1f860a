"""What the body of a run may hold; the same for every way to start one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, cast
from uuid import UUID

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    field_validator,
    model_validator,
)
from pydantic_core import CoreSchema

from adapter.errors import Invalid
from api.bodies import Body, decode
from api.schemas.commands import Command
from api.schemas.threads import Metadata

# Ten years.
_LONGEST_DELAY_SECONDS = 315_360_000

StreamMode = Literal[
    "values",
    "updates",
    "messages",
    "messages-tuple",
    "custom",
    "events",
    "debug",
    "tasks",
    "checkpoints",
    "tools",
    "lifecycle",
]


def as_modes(given: Any) -> Any:
    """Returns a list of modes of one mode or none."""
    if isinstance(given, str):
        return [given]
    return given or ["values"]


StreamModes = Annotated[
    list[StreamMode], BeforeValidator(as_modes, json_schema_input_type=StreamMode | list[StreamMode])
]


def _addressing(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Returns what may name a checkpoint.

    Raises:
        ValueError: it does, by what is no id.
    """
    if not isinstance(checkpoint.get("checkpoint_id"), (str, type(None))):
        raise ValueError("checkpoint_id must be a string")
    return checkpoint


class RunConfig(BaseModel):
    """LangGraph's config of a run. What is not named here is passed on as it is."""

    model_config = ConfigDict(extra="allow", frozen=True)

    tags: list[str] | None = None
    recursion_limit: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    max_concurrency: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    configurable: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    run_name: str | None = None

    @field_validator("configurable")
    @classmethod
    def _configurable(cls, configurable: dict[str, Any] | None) -> dict[str, Any] | None:
        return None if configurable is None else _addressing(configurable)


class RunCreate(Body):
    """POST …/runs, …/runs/stream, …/runs/wait."""

    assistant_id: str
    input: Any = None
    command: Command | None = None
    stream_mode: StreamModes = Field(default_factory=lambda: ["values"])
    stream_subgraphs: bool = False
    config: RunConfig | None = None
    context: dict[str, Any] | None = None
    metadata: Metadata = Field(default_factory=dict[str, Any])
    checkpoint: dict[str, Any] | None = None
    checkpoint_id: str | None = None
    interrupt_before: Literal["*"] | list[str] | None = None
    interrupt_after: Literal["*"] | list[str] | None = None
    multitask_strategy: Literal["reject", "rollback", "interrupt", "enqueue"] = "enqueue"
    if_not_exists: Literal["create", "reject"] = "reject"
    on_disconnect: Literal["cancel", "continue"] | None = None
    on_completion: Literal["delete", "keep"] = "delete"
    durability: Literal["sync", "async", "exit"] | None = None
    after_seconds: Annotated[float, Field(ge=0, le=_LONGEST_DELAY_SECONDS)] = 0
    webhook: Annotated[str, Field(max_length=4096)] | None = None
    feedback_keys: list[str] | None = None

    @field_validator("checkpoint")
    @classmethod
    def _checkpoint(cls, checkpoint: dict[str, Any]) -> dict[str, Any]:
        return _addressing(checkpoint)

    def asked(self) -> dict[str, Any]:
        """Returns what an auth handler is shown: a run, as LangGraph's `RunsCreate` describes it."""
        kwargs = self.request()
        kwargs.pop("metadata", None)
        return {
            "assistant_id": self.assistant_id,
            "thread_id": None,
            "run_id": None,
            "status": "pending",
            "metadata": self.metadata,
            "prevent_insert_if_inflight": self.multitask_strategy == "reject",
            "multitask_strategy": self.multitask_strategy,
            "if_not_exists": self.if_not_exists,
            "after_seconds": self.after_seconds,
            "kwargs": kwargs,
        }

    def request(self) -> dict[str, Any]:
        """Returns what is stored with the turn: what decides about its course, and what it shows."""
        stored = {name: getattr(self, name) for name in _OF_THE_TURN if getattr(self, name) is not None}
        if self.command is not None:
            stored["command"] = self.command.model_dump(exclude_unset=True)
        if self.config is not None:
            given = self.config.model_dump(exclude_unset=True)
            stored["config"] = {name: value for name, value in given.items() if value is not None}
        if self.after_seconds:
            stored["after_seconds"] = self.after_seconds
        return stored


# Not: how its client listens, and what has a column of its own. Metadata is here as well, so that a request that
# is sent again with other metadata counts as another one.
_OF_THE_TURN = (
    "input",
    "stream_mode",
    "stream_subgraphs",
    "context",
    "metadata",
    "checkpoint",
    "checkpoint_id",
    "interrupt_before",
    "interrupt_after",
    "durability",
    "feedback_keys",
    "webhook",
)


class RunBatch(Body):
    """POST /runs/batch: a list of bodies, each of a run without a thread of the client's."""

    shown_to_handlers: ClassVar[bool] = False

    runs: Annotated[list[RunCreate], Field(min_length=1, max_length=100)]

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Returns the schema of what is sent, which is the list itself."""
        whole = handler.resolve_ref_schema(handler(core_schema))
        return {"type": "array", **whole["properties"]["runs"]}

    @classmethod
    def of(cls, raw: bytes) -> Self:
        """Returns the model of a request's bytes.

        Raises:
            Invalid: they are not a list of such bodies.
        """
        listed = decode(raw)
        if not isinstance(listed, list):
            raise Invalid("The request body must be a JSON array")
        return cls._validated({"runs": [_without_nulls(item) for item in cast("list[Any]", listed)]}, raw)


class RunsCancel(Body):
    """POST /runs/cancel: runs of one thread by their ids, or all of a status."""

    handlers_change: ClassVar[tuple[str, ...]] = ()

    thread_id: UUID | None = None
    run_ids: Annotated[list[UUID], Field(min_length=1, max_length=1000)] | None = None
    status: Literal["pending", "running", "all"] | None = None

    @model_validator(mode="after")
    def _says_which(self) -> Self:
        if (self.status is None) == (self.run_ids is None):
            raise ValueError("give either status, or thread_id and run_ids")
        if self.run_ids is not None and self.thread_id is None:
            raise ValueError("run_ids needs the thread_id of its runs")
        return self

    @property
    def statuses(self) -> tuple[str, ...]:
        """Statuses of the runs that are meant."""
        return ("pending", "running") if self.status in (None, "all") else (self.status,)


def _without_nulls(item: Any) -> Any:
    return RunCreate.given(cast("Mapping[str, Any]", item)) if isinstance(item, Mapping) else item
