"""What bodies of the assistant routes may hold."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from api.bodies import Body
from api.schemas.runs import RunConfig
from api.schemas.threads import Limit, Metadata, Offset

Version = Annotated[int, Field(ge=1, le=2**31 - 1)]


class AssistantCount(Body):
    """POST /assistants/count."""

    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    graph_id: str | None = None
    name: str | None = None


class AssistantSearch(AssistantCount):
    """POST /assistants/search."""

    limit: Limit = 10
    offset: Offset = 0
    sort_by: Literal["assistant_id", "created_at", "updated_at", "name", "graph_id"] = "created_at"
    sort_order: Literal["asc", "desc"] = "desc"
    select: list[str] = Field(default_factory=list[str])


class _Configured(Body):
    """What may be said of an assistant."""

    config: RunConfig | None = None
    context: dict[str, Any] | None = None
    metadata: Metadata = Field(default_factory=dict[str, Any])
    description: str | None = None

    def given_config(self) -> dict[str, Any] | None:
        """Returns the config without nulls; None when the body has none."""
        if self.config is None:
            return None
        given = self.config.model_dump(exclude_unset=True)
        return {name: value for name, value in given.items() if value is not None}


class AssistantCreate(_Configured):
    """POST /assistants."""

    graph_id: str
    assistant_id: str | None = None
    if_exists: Literal["raise", "do_nothing"] = "raise"
    name: str = "Untitled"


class AssistantPatch(_Configured):
    """PATCH /assistants/{assistant_id}: what is absent stays, metadata is merged."""

    graph_id: str | None = None
    name: str | None = None


class AssistantVersions(Body):
    """POST /assistants/{assistant_id}/versions."""

    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    limit: Limit = 10
    offset: Offset = 0


class AssistantLatest(Body):
    """POST /assistants/{assistant_id}/latest."""

    handlers_change: ClassVar[tuple[str, ...]] = ()

    version: Version
