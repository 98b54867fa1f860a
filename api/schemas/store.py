"""What bodies of the store's routes may hold."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from api.bodies import Body
from api.schemas.threads import Limit, Minutes, Offset

Namespace = list[str]
Key = Annotated[str, Field(min_length=1)]


class _InNamespace(Body):
    """A body whose `namespace` an auth handler may change, as it names it, whatever the client calls it."""

    handlers_change: ClassVar[tuple[str, ...]] = ("namespace",)

    def asked(self) -> dict[str, Any]:
        """Returns what an auth handler is shown: namespaces are tuples."""
        shown = super().asked()
        return {k: tuple(shown[k] or ()) if k in ("namespace", "suffix") else v for k, v in shown.items()}


class ItemAt(_InNamespace):
    """DELETE /store/items."""

    namespace: Namespace
    key: Key


class ItemPut(ItemAt):
    """PUT /store/items."""

    value: dict[str, Any]
    index: Literal[False] | list[str] | None = None
    ttl: Minutes | None = None


class ItemSearch(_InNamespace):
    """POST /store/items/search."""

    namespace: Namespace = Field(default_factory=list[str], alias="namespace_prefix")
    filter: dict[str, Any] | None = None
    limit: Limit = 10
    offset: Offset = 0
    query: str | None = None
    refresh_ttl: bool = True


class NamespaceSearch(_InNamespace):
    """POST /store/namespaces."""

    namespace: Namespace = Field(default_factory=list[str], alias="prefix")
    suffix: Namespace | None = None
    max_depth: Annotated[int, Field(ge=1, le=1000)] | None = None
    limit: Limit = 100
    offset: Offset = 0
