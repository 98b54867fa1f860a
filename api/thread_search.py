"""Owns the search for threads, also by what their latest state contains.

States are not stored in a form that PostgreSQL can search: channels are in LangGraph's serialization, one by one. Texts
and numbers at the top of a state stand in its checkpoint, and PostgreSQL leaves out threads where they differ. Of the
threads that remain the states are read, at most `EXAMINED` for one request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, cast

import orjson
from psycopg.rows import DictRow

from adapter.errors import Invalid
from adapter.store import requests
from adapter.store.only import Only
from adapter.wire import dumps
from api.deps import Parts, checked_uuid
from api.schemas.threads import ThreadCount, ThreadSearch

EXAMINED = 1000
_BATCH = 50


async def find_threads(parts: Parts, body: ThreadSearch, only: Only) -> tuple[list[DictRow], bool]:
    """Returns a page of those threads that whoever asks may see, and whether there are more.

    Raises:
        Invalid: an id is not a UUID, or too many states would have to be read.
    """
    if not body.values:
        rows = await _rows(parts, body, only, limit=body.limit + 1, offset=body.offset)
        return rows[: body.limit], len(rows) > body.limit
    page: list[DictRow] = []
    passed = 0
    async for row in _containing(parts, body, only):
        if passed < body.offset:
            passed += 1
        elif len(page) == body.limit:
            return page, True
        else:
            page.append(row)
    return page, False


async def count_threads(parts: Parts, body: ThreadCount, only: Only) -> int:
    """Returns how many threads there are that whoever asks may see.

    Raises:
        Invalid: too many states would have to be read.
    """
    if not body.values:
        return await requests.count_threads(parts.pool, metadata=body.metadata, status=body.status, only=only)
    asked = ThreadSearch(metadata=body.metadata, values=body.values, status=body.status)
    return len([row async for row in _containing(parts, asked, only)])


async def _containing(parts: Parts, body: ThreadSearch, only: Only) -> AsyncGenerator[DictRow]:
    """Yields threads whose latest state contains `body.values`, in the order asked for."""
    # The rows of one moment, so that a thread which changes meanwhile is neither missed nor found twice.
    candidates = await _rows(parts, body, only, limit=EXAMINED + 1, offset=0)
    for start in range(0, min(len(candidates), EXAMINED), _BATCH):
        batch = candidates[start : min(start + _BATCH, EXAMINED)]
        states = await asyncio.gather(*(parts.snapshots.values(row) for row in batch))
        for row, state in zip(batch, states, strict=True):
            if state is not None and contains(orjson.loads(dumps(state)), body.values):
                yield row
    if len(candidates) > EXAMINED:
        raise Invalid(
            f"values: more than {EXAMINED} threads would have to be read; narrow the search by metadata, status or ids"
        )


async def _rows(parts: Parts, body: ThreadSearch, only: Only, *, limit: int, offset: int) -> list[DictRow]:
    if body.ids is None and not body.values and (body.sort_by, body.sort_order) == ("updated_at", "desc"):
        return await requests.list_threads(
            parts.pool, metadata=body.metadata, status=body.status, limit=limit, offset=offset, only=only
        )
    return await requests.search_threads(
        parts.pool,
        metadata=body.metadata,
        status=body.status,
        ids=None if body.ids is None else [checked_uuid(one, "thread") for one in body.ids],
        values=body.values,
        sort=body.sort_by,
        ascending=body.sort_order == "asc",
        limit=limit,
        offset=offset,
        only=only,
    )


def contains(value: Any, asked: Any) -> bool:
    """Whether JSON contains other JSON: objects key by key, lists each item in any order, anything else if equal."""
    if isinstance(asked, Mapping):
        if not isinstance(value, Mapping):
            return False
        held = cast("Mapping[str, Any]", value)
        wanted = cast("Mapping[str, Any]", asked)
        return all(key in held and contains(held[key], one) for key, one in wanted.items())
    if isinstance(asked, list):
        if not isinstance(value, list):
            return False
        items = cast("Sequence[Any]", value)
        return all(any(contains(item, one) for item in items) for one in cast("Sequence[Any]", asked))
    return isinstance(value, bool) == isinstance(asked, bool) and value == asked
