"""What bodies of the assistant routes may hold."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from api.bodies import Body
from api.schemas.threads import Limit, Offset


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
