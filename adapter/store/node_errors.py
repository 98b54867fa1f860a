"""Owns exceptions on their way to a node's error handler, which may run in another process.

Only the exception's class, `args` and attributes are kept, in LangGraph's serializer; its class is looked up among
modules, never unpickled.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from adapter.store.pool import Connection, Pool, fetch_all
from adapter.store.sql import query

_SERDE = JsonPlusSerializer()


async def store(conn: Connection, thread_id: str, task_id: str, error: BaseException) -> None:
    """Stores what a task raised, in the transaction that marks the task as failed."""
    kind = type(error)
    try:
        dumped = _SERDE.dumps_typed((error.args, error.__dict__))
    except Exception:  # an attribute that cannot be stored: the handler sees the text
        dumped = _SERDE.dumps_typed(([str(error)], {}))
    await conn.execute(
        query("store_node_error"),
        {
            "thread_id": thread_id,
            "task_id": task_id,
            "module": kind.__module__,
            "qualname": kind.__qualname__,
            "kind": dumped[0],
            "arguments": dumped[1],
        },
    )


async def load(pool: Pool, thread_id: str, task_ids: Sequence[str]) -> dict[str, BaseException]:
    """Returns the stored exceptions of these tasks, by task id."""
    rows = await fetch_all(pool, "load_node_errors", thread_id=thread_id, task_ids=list(task_ids))
    return {row["task_id"]: _revive(row) for row in rows}


def _revive(row: Mapping[str, Any]) -> BaseException:
    args, attributes = _SERDE.loads_typed((row["kind"], bytes(row["arguments"])))
    try:
        found: Any = importlib.import_module(row["module"])
        for part in str(row["qualname"]).split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):  # a class made inside a function
        found = Exception
    is_error = isinstance(found, type) and issubclass(found, BaseException)
    kind = cast("type[BaseException]", found) if is_error else Exception
    # Not through __init__: its parameters need not be the exception's args.
    error = kind.__new__(kind, *args)
    error.args = tuple(args)
    error.__dict__.update(attributes)
    return error
