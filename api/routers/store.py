"""Routes of the long-term store, the one that nodes are given: items under a key in a namespace."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from langgraph.store.base import BaseStore, InvalidNamespaceError, Item, SearchItem
from starlette.responses import Response

from adapter.errors import Invalid, PublicError
from adapter.store.pool import store_errors
from api.bodies import BodyOf
from api.deps import Parts, PartsDep, answer
from api.schemas.store import ItemAt, ItemPut, ItemSearch, NamespaceSearch
from api.shapes import when

router = APIRouter(prefix="/store", tags=["store"])


class Missing(PublicError):
    """The request does not say where."""


@router.put("/items")
async def put(parts: PartsDep, body: Annotated[ItemPut, Depends(BodyOf(ItemPut))]) -> Response:
    """Stores an item, or replaces it."""
    async with _store(parts) as store:
        await store.aput(_checked(body.namespace), body.key, body.value, index=body.index, ttl=body.ttl)
    return Response(status_code=204)


@router.get("/items")
async def get(
    parts: PartsDep,
    namespace: Annotated[list[str] | None, Query()] = None,
    key: str = "",
    refresh_ttl: bool | None = None,
) -> Response:
    """Returns an item, or null; `namespace` has its labels joined by dots."""
    labels = [label for part in namespace or () if part for label in part.split(".")]
    if not key:
        raise Missing("Key is required")
    async with _store(parts) as store:
        item = await store.aget(_checked(labels), key, refresh_ttl=refresh_ttl)
    return answer(None if item is None else _item(item))


@router.delete("/items")
async def delete(parts: PartsDep, body: Annotated[ItemAt, Depends(BodyOf(ItemAt))]) -> Response:
    """Deletes an item, if it is there."""
    async with _store(parts) as store:
        await store.adelete(_checked(body.namespace), body.key)
    return Response(status_code=204)


@router.post("/items/search")
async def search(parts: PartsDep, body: Annotated[ItemSearch, Depends(BodyOf(ItemSearch))]) -> Response:
    """Returns items below a namespace whose value fits the filter."""
    async with _store(parts) as store:
        found = await store.asearch(
            _labels(body.namespace_prefix),
            query=body.query,
            filter=body.filter,
            limit=body.limit,
            offset=body.offset,
            refresh_ttl=body.refresh_ttl,
        )
    return answer({"items": [_found(item) for item in found]})


@router.post("/namespaces")
async def namespaces(
    parts: PartsDep, body: Annotated[NamespaceSearch, Depends(BodyOf(NamespaceSearch))]
) -> Response:
    """Returns the namespaces that hold items, in order."""
    async with _store(parts) as store:
        found = await store.alist_namespaces(
            prefix=_labels(body.prefix or ()),
            suffix=_labels(body.suffix or ()),
            max_depth=body.max_depth,
            limit=body.limit,
            offset=body.offset,
        )
    return answer({"namespaces": found})


def _checked(namespace: Sequence[str]) -> tuple[str, ...]:
    if not namespace:
        raise Missing("Namespace cannot be empty.")
    return _labels(namespace)


def _labels(namespace: Sequence[str]) -> tuple[str, ...]:
    for label in namespace:
        if not label or "." in label:
            raise Invalid(f"Namespace label '{label}' must be a non-empty string without periods")
    return tuple(namespace)


@asynccontextmanager
async def _store(parts: Parts) -> AsyncGenerator[BaseStore]:
    """Yields the store; what it refuses is the client's to know."""
    async with store_errors():
        try:
            yield parts.store
        except (
            InvalidNamespaceError,
            ValueError,
        ) as exc:  # a reserved label, an operator that a filter cannot have
            raise Invalid(str(exc)) from None


def _item(item: Item) -> dict[str, Any]:
    return {
        "namespace": list(item.namespace),
        "key": item.key,
        "value": item.value,
        "created_at": when(item.created_at),
        "updated_at": when(item.updated_at),
    }


def _found(item: SearchItem) -> dict[str, Any]:
    return {**_item(item), "score": item.score}
