"""What bodies of the thread routes may hold."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from adapter.store.requests import Lifetime
from api.bodies import Body, refuse_reserved
from api.schemas.commands import Command

Metadata = Annotated[dict[str, Any], AfterValidator(refuse_reserved)]
Limit = Annotated[int, Field(ge=1, le=1000)]
# As far as PostgreSQL counts.
Offset = Annotated[int, Field(ge=0, le=2**62)]
ThreadStatus = Literal["idle", "busy", "interrupted", "error"]
Sort = Literal["thread_id", "status", "created_at", "updated_at", "state_updated_at"]


class Update(Body):
    """One edit of a superstep, as if a node had returned it."""

    values: Any = None
    command: Command | None = None
    as_node: str | None = None


class Superstep(Body):
    """Edits that count as one step."""

    updates: Annotated[list[Update], Field(min_length=1)]


# A hundred years.
Minutes = Annotated[float, Field(gt=0, le=100 * 366 * 24 * 60, allow_inf_nan=False)]
Strategy = Literal["delete", "keep_latest"]


class Ttl(Body):
    """How many minutes after its last change a thread ends, and how."""

    ttl: Minutes
    strategy: Strategy = "delete"

    def lifetime(self) -> Lifetime:
        """Returns it as it is stored."""
        return Lifetime(self.ttl, self.strategy)


def _as_ttl(given: Any) -> Any:
    """Takes a bare number for minutes."""
    return {"ttl": given} if isinstance(given, (int, float)) and not isinstance(given, bool) else given


GivenTtl = Annotated[Ttl, BeforeValidator(_as_ttl, json_schema_input_type=Ttl | Minutes)]


class ThreadCreate(Body):
    """POST /threads."""

    thread_id: str | None = None
    metadata: Metadata = Field(default_factory=dict[str, Any])
    if_exists: Literal["raise", "do_nothing"] = "raise"
    supersteps: list[Superstep] = Field(default_factory=list[Superstep])
    ttl: GivenTtl | None = None


class ThreadPatch(Body):
    """PATCH /threads/{thread_id}."""

    metadata: Metadata = Field(default_factory=dict[str, Any])
    ttl: GivenTtl | None = None


class ThreadPrune(Body):
    """POST /threads/prune."""

    handlers_change: ClassVar[tuple[str, ...]] = ()

    thread_ids: Annotated[list[str], Field(max_length=1000)]
    strategy: Strategy = "delete"


class ThreadCount(Body):
    """POST /threads/count."""

    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    values: dict[str, Any] = Field(default_factory=dict[str, Any])
    status: ThreadStatus | None = None


class ThreadSearch(ThreadCount):
    """POST /threads/search."""

    ids: list[str] | None = None
    limit: Limit = 10
    offset: Offset = 0
    sort_by: Sort = "updated_at"
    sort_order: Literal["asc", "desc"] = "desc"
    select: list[str] = Field(default_factory=list[str])
    extract: Annotated[dict[str, str], Field(max_length=10)] = Field(default_factory=dict[str, str])
