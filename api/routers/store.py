"""Routes of the long-term store, the one that nodes are given: items under a key in a namespace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchItem,
    SearchOp,
)
from starlette.responses import Response

from adapter.errors import Invalid, PublicError
from adapter.store.pool import store_errors
from api.access import AccessDep
from api.bodies import BodyOf
from api.deps import Parts, PartsDep, answer
from api.schemas.store import ItemAt, ItemPut, ItemSearch, NamespaceSearch
from api.shapes import when

router = APIRouter(prefix="/store", tags=["store"])

# LangGraph's own.
_RESERVED = "langgraph"


class Missing(PublicError):
    """The request does not say where."""


@router.put("/items")
async def put(parts: PartsDep, body: Annotated[ItemPut, Depends(BodyOf(ItemPut))]) -> Response:
    """Stores an item, or replaces it."""
    namespace = _checked(body.namespace)
    if namespace[0] == _RESERVED:
        raise Invalid(f'The first label of a namespace cannot be "{_RESERVED}"')
    await _do(parts, PutOp(namespace, body.key, body.value, index=body.index, ttl=body.ttl))
    return Response(status_code=204)


@router.get("/items")
async def get(
    parts: PartsDep,
    access: AccessDep,
    namespace: Annotated[list[str] | None, Query()] = None,
    key: str = "",
    refresh_ttl: bool = True,
) -> Response:
    """Returns an item, or null; `namespace` has its labels joined by dots."""
    if not key:
        raise Missing("Key is required")
    item: Item | None = await _do(parts, GetOp(_checked(access.namespace(namespace or ())), key, refresh_ttl))
    return answer(None if item is None else _item(item))


@router.delete("/items")
async def delete(parts: PartsDep, body: Annotated[ItemAt, Depends(BodyOf(ItemAt))]) -> Response:
    """Deletes an item, if it is there."""
    await _do(parts, PutOp(_checked(body.namespace), body.key, None))
    return Response(status_code=204)


@router.post("/items/search")
async def search(parts: PartsDep, body: Annotated[ItemSearch, Depends(BodyOf(ItemSearch))]) -> Response:
    """Returns items below a namespace whose value fits the filter."""
    prefix = _labels(body.namespace)
    found: list[SearchItem] = await _do(
        parts, SearchOp(prefix, body.filter, body.limit, body.offset, body.query, body.refresh_ttl)
    )
    return answer({"items": [{**_item(item), "score": item.score} for item in found]})


@router.post("/namespaces")
async def namespaces(
    parts: PartsDep, body: Annotated[NamespaceSearch, Depends(BodyOf(NamespaceSearch))]
) -> Response:
    """Returns the namespaces that hold items, in order."""
    conditions: list[MatchCondition] = []
    if body.namespace:
        conditions.append(MatchCondition("prefix", _labels(body.namespace)))
    if body.suffix:
        conditions.append(MatchCondition("suffix", _labels(body.suffix)))
    found: list[tuple[str, ...]] = await _do(
        parts, ListNamespacesOp(tuple(conditions), body.max_depth, body.limit, body.offset)
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


async def _do(parts: Parts, op: Op) -> Any:
    """Carries out an operation by itself: among those of other clients, one that is refused would fail all of them.

    Raises:
        Invalid: the store does not know an operator of the filter.
    """
    async with store_errors():
        try:
            return (await parts.store.abatch([op]))[0]
        except ValueError as exc:
            raise Invalid(str(exc)) from None


def _item(item: Item) -> dict[str, Any]:
    return {
        "namespace": list(item.namespace),
        "key": item.key,
        "value": item.value,
        "created_at": when(item.created_at),
        "updated_at": when(item.updated_at),
    }
