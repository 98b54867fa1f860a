"""Owns the rows of assistants and of their versions.

What an assistant adds to a run is in `api/run_config.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from adapter.store.only import EVERYTHING, Only
from adapter.store.pool import Pool, execute, fetch_all, fetch_one, store_errors
from adapter.store.sql import query


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which assistants a search is for.

    Attributes:
        graph_ids: the project's graphs; assistants that the server made for others are left out.
        graph_id: of this graph; None is any.
        name: a part of the name, in any case; None is any.
        only: those that whoever asks may see.
    """

    graph_ids: Sequence[str]
    metadata: Mapping[str, Any]
    graph_id: str | None = None
    name: str | None = None
    only: Only = EVERYTHING

    def params(self) -> dict[str, Any]:
        """Returns it as the statements take it."""
        return {
            "graph_ids": list(self.graph_ids),
            "metadata": Jsonb(dict(self.metadata)),
            "graph_id": self.graph_id,
            "name": self.name,
            "only": self.only.sql(),
        }


async def ensure_system(pool: Pool, graphs: Mapping[str, str]) -> None:
    """Makes the assistants of the project's graphs, unless they exist.

    Args:
        pool: PostgreSQL.
        graphs: assistant id by graph id.
    """
    await execute(pool, "ensure_system_assistants", ids=list(graphs.values()), graph_ids=list(graphs))


async def create(
    pool: Pool,
    assistant_id: str,
    *,
    graph_id: str,
    name: str,
    description: str | None,
    config: Mapping[str, Any],
    context: Mapping[str, Any],
    metadata: Mapping[str, Any],
) -> DictRow | None:
    """Creates an assistant; returns None when there is one with this id."""
    return await fetch_one(
        pool,
        "create_assistant",
        assistant_id=assistant_id,
        graph_id=graph_id,
        name=name,
        description=description,
        config=Jsonb(dict(config)),
        context=Jsonb(dict(context)),
        metadata=Jsonb(dict(metadata)),
    )


async def get(pool: Pool, assistant_id: str) -> DictRow | None:
    """Returns an assistant's row, or None."""
    return await fetch_one(pool, "get_assistant", assistant_id=assistant_id)


async def update(
    pool: Pool,
    assistant_id: str,
    *,
    graph_id: str | None,
    name: str | None,
    description: str | None,
    config: Mapping[str, Any] | None,
    context: Mapping[str, Any] | None,
    metadata: Mapping[str, Any],
    only: Only,
) -> DictRow | None:
    """Makes a new version, the latest; what is None stays, metadata is merged.

    Returns None without the assistant, or when it is not, or would not be, among `only`.
    """
    params = {
        "assistant_id": assistant_id,
        "graph_id": graph_id,
        "name": name,
        "description": description,
        "config": None if config is None else Jsonb(dict(config)),
        "context": None if context is None else Jsonb(dict(context)),
        "metadata": Jsonb(dict(metadata)),
        "only": only.sql(),
    }
    async with store_errors(), pool.connection() as conn, conn.transaction(), conn.pipeline():
        await conn.execute(query("lock_assistant"), {"assistant_id": assistant_id})
        cursor = await conn.execute(query("update_assistant"), params)
        return await cursor.fetchone()


async def set_latest(pool: Pool, assistant_id: str, version: int, only: Only) -> DictRow | None:
    """Makes a version the one that runs use; returns None when there is no such version among `only`."""
    return await fetch_one(
        pool, "set_latest_assistant", assistant_id=assistant_id, version=version, only=only.sql()
    )


async def versions(
    pool: Pool, assistant_id: str, *, metadata: Mapping[str, Any], limit: int, offset: int
) -> list[DictRow]:
    """Returns an assistant's versions, the newest first."""
    return await fetch_all(
        pool,
        "list_assistant_versions",
        assistant_id=assistant_id,
        metadata=Jsonb(dict(metadata)),
        limit=limit,
        offset=offset,
    )


async def delete(pool: Pool, assistant_id: str, only: Only) -> bool:
    """Deletes an assistant with its versions; what was run with it stays. Returns False without one among `only`."""
    return await fetch_one(pool, "delete_assistant", assistant_id=assistant_id, only=only.sql()) is not None


async def threads(pool: Pool, assistant_id: str, *, limit: int, only: Only) -> list[str]:
    """Returns those of the threads `only` whose last run was made with an assistant."""
    rows = await fetch_all(
        pool, "threads_of_assistant", assistant_id=assistant_id, limit=limit, only=only.sql()
    )
    return [str(row["thread_id"]) for row in rows]


async def search(
    pool: Pool, wanted: Wanted, *, sort: str, ascending: bool, limit: int, offset: int
) -> list[DictRow]:
    """Returns assistants in an order."""
    return await fetch_all(
        pool,
        "search_assistants",
        **wanted.params(),
        sort=sort,
        ascending=ascending,
        limit=limit,
        offset=offset,
    )


async def count(pool: Pool, wanted: Wanted) -> int:
    """Returns how many assistants there are."""
    row = await fetch_one(pool, "count_assistants", **wanted.params())
    assert row is not None
    return int(row["assistants"])
