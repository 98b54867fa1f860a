"""Owns the wire form of threads, states and journal entries; that of runs is in `adapter/run_form.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import Interrupt, PregelTask, StateSnapshot
from psycopg.rows import DictRow

from adapter.run_form import when
from adapter.wire import checkpoint_json
from api.bodies import without_reserved

# ------------------------------------------------------------ threads


def thread_json(row: DictRow, values: Any) -> dict[str, Any]:
    """Returns a thread.

    Args:
        row: its row.
        values: its latest state, or None before there is one.
    """
    thread = {
        "thread_id": str(row["thread_id"]),
        "created_at": when(row["created_at"]),
        "updated_at": when(row["updated_at"]),
        "state_updated_at": when(row["state_updated_at"]),
        "metadata": without_reserved(row["metadata"]),
        "status": row["status"],
        "config": row["config"],
        "values": values,
    }
    if row["state_updated_at"] != row["created_at"]:  # a run has ended, or somebody edited the state
        thread["error"] = row["error"]
        thread["interrupts"] = row["interrupts"]
    return thread


def ttl_json(row: DictRow) -> dict[str, Any]:
    """Returns a thread's lifetime under `ttl`; nothing for one that lives for ever."""
    if row["ttl_minutes"] is None:
        return {}
    expires = row["updated_at"] + timedelta(minutes=row["ttl_minutes"])
    shown = {
        "strategy": row["ttl_strategy"],
        "ttl_minutes": row["ttl_minutes"],
        "expires_at": when(expires),
    }
    return {"ttl": shown}


# ------------------------------------------------------------ assistants


def assistant_json(row: DictRow) -> dict[str, Any]:
    """Returns an assistant."""
    return {**version_json(row), "updated_at": when(row["updated_at"])}


def version_json(row: DictRow) -> dict[str, Any]:
    """Returns a version of an assistant: `context` and `config.configurable` say the same."""
    config: Mapping[str, Any] = row["config"]
    context: Mapping[str, Any] = row["context"] or config.get("configurable") or {}
    return {
        "assistant_id": str(row["assistant_id"]),
        "graph_id": row["graph_id"],
        "config": {**config, "configurable": context} if context else config,
        "context": context,
        "metadata": row["metadata"],
        "name": row["name"],
        "created_at": when(row["created_at"]),
        "version": row["version"],
        "description": row["description"],
    }


# ------------------------------------------------------------ states


def state_json(snapshot: StateSnapshot) -> dict[str, Any]:
    """Returns a state, and those of its open subgraphs if the snapshot has them."""
    checkpoint = _checkpoint(snapshot.config)
    parent = _checkpoint(snapshot.parent_config)
    metadata = cast("Mapping[str, Any] | None", snapshot.metadata)
    return {
        "values": snapshot.values,
        "next": list(snapshot.next),
        "tasks": [_task(task) for task in snapshot.tasks],
        "metadata": None if metadata is None else without_reserved(metadata),
        "created_at": snapshot.created_at,
        "checkpoint": checkpoint,
        "parent_checkpoint": parent,
        "interrupts": [interrupt_json(interrupt) for interrupt in snapshot.interrupts],
        "checkpoint_id": checkpoint["checkpoint_id"] if checkpoint else None,
        "parent_checkpoint_id": parent["checkpoint_id"] if parent else None,
    }


EMPTY_STATE: Mapping[str, Any] = {
    "values": {},
    "next": [],
    "tasks": [],
    "metadata": None,
    "created_at": None,
    "checkpoint": None,
    "parent_checkpoint": None,
    "interrupts": [],
    "checkpoint_id": None,
    "parent_checkpoint_id": None,
}


def interrupt_json(interrupt: Interrupt[Any]) -> dict[str, Any]:
    """Returns an interrupt as states and threads carry it."""
    return {"id": interrupt.id, "value": interrupt.value}


def _checkpoint(config: RunnableConfig | None) -> dict[str, Any] | None:
    configurable = (config or {}).get("configurable", {})
    return checkpoint_json(configurable) if "checkpoint_id" in configurable else None


def _task(task: PregelTask) -> dict[str, Any]:
    error = cast("Any", task.error)
    inner = task.state
    return {
        "id": task.id,
        "name": task.name,
        "path": cast("Any", task.path),
        "error": error if error is None or isinstance(error, str) else repr(error),
        "interrupts": [interrupt_json(interrupt) for interrupt in task.interrupts],
        "checkpoint": checkpoint_json(inner.get("configurable", {})) if isinstance(inner, dict) else None,
        "state": state_json(inner) if isinstance(inner, StateSnapshot) else None,
        "result": cast("Any", task.result),
    }


# ------------------------------------------------------------ journal


def effects_json(rows: Sequence[DictRow]) -> list[dict[str, Any]]:
    """Returns journaled effects."""
    return [
        {
            "key": row["key"],
            "thread_id": str(row["thread_id"]),
            "run_id": str(row["turn_id"]),
            "name": row["name"],
            "node": row["node"],
            "mode": row["mode"],
            "state": row["state"],
            "attempts": row["attempts"],
            "compensations": row["compensations"],
            "error": row["error"],
            "unsettled": row["unsettled"],
            "started_at": when(row["started_at"]),
            "updated_at": when(row["updated_at"]),
        }
        for row in rows
    ]


def abandoned_json(rows: Sequence[DictRow]) -> list[dict[str, Any]]:
    """Returns threads whose last run failed or was cancelled."""
    return [
        {
            "thread_id": str(row["thread_id"]),
            "run_id": str(row["turn_id"]),
            "status": row["status"],
            "error": row["error"],
            "ended_at": when(row["ended_at"]),
            "effects": row["effects"],
        }
        for row in rows
    ]
