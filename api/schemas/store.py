"""What bodies of the store's routes may hold."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from api.bodies import Body
from api.schemas.threads import Limit, Offset

Namespace = list[str]
Key = Annotated[str, Field(min_length=1)]
Minutes = Annotated[float, Field(gt=0, le=100 * 366 * 24 * 60, allow_inf_nan=False)]


class ItemAt(Body):
    """DELETE /store/items."""

    namespace: Namespace
    key: Key


class ItemPut(ItemAt):
    """PUT /store/items."""

    value: dict[str, Any]
    index: Literal[False] | list[str] | None = None
    ttl: Minutes | None = None


class ItemSearch(Body):
    """POST /store/items/search."""

    namespace_prefix: Namespace = Field(default_factory=list[str])
    filter: dict[str, Any] | None = None
    limit: Limit = 10
    offset: Offset = 0
    query: str | None = None
    refresh_ttl: bool = True


class NamespaceSearch(Body):
    """POST /store/namespaces."""

    prefix: Namespace | None = None
    suffix: Namespace | None = None
    max_depth: Annotated[int, Field(ge=1, le=1000)] | None = None
    limit: Limit = 100
    offset: Offset = 0
