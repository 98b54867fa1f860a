"""What the body of a run may hold; the same for every way to start one."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from api.bodies import Body
from api.schemas.commands import Command
from api.schemas.threads import Metadata

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


class RunConfig(BaseModel):
    """LangGraph's config of a run. What is not named here is passed on as it is."""

    model_config = ConfigDict(extra="allow", frozen=True)

    tags: list[str] | None = None
    recursion_limit: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    max_concurrency: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    configurable: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    run_name: str | None = None


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
    after_seconds: float = 0
    webhook: str | None = None
    feedback_keys: list[str] | None = None

    @field_validator("checkpoint")
    @classmethod
    def _checkpoint(cls, checkpoint: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(checkpoint.get("checkpoint_id"), (str, type(None))):
            raise ValueError("checkpoint_id must be a string")
        return checkpoint

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
)
