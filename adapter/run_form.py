"""Owns the wire form of a run: what clients are shown of it, and what its webhook is sent."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from psycopg.rows import DictRow

from adapter.turn_request import LANGGRAPH_VERSION

# Who a run belongs to, as the Agent Server fills it in when nobody is asked who they are.
_NOBODY = {"user_id": ""}


def when(moment: datetime) -> str:
    """Returns a time as clients parse it: ISO 8601, UTC, microseconds."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def run_json(row: DictRow) -> dict[str, Any]:
    """Returns a run."""
    request = cast("Mapping[str, Any]", row["request"])
    ids = {"graph_id": row["graph_id"], "assistant_id": str(row["assistant_id"])}
    metadata = {"created_by": "system", **ids, **row["metadata"]}
    return {
        "run_id": str(row["turn_id"]),
        "thread_id": str(row["thread_id"]),
        "assistant_id": ids["assistant_id"],
        "metadata": metadata,
        "status": row["status"],
        "kwargs": {
            "input": request.get("input"),
            "command": request.get("command"),
            "config": _run_config(row, request, metadata, ids),
            "context": request.get("context") or {},
            "stream_mode": request.get("stream_mode") or ["values"],
            "interrupt_before": request.get("interrupt_before"),
            "interrupt_after": request.get("interrupt_after"),
            "webhook": request.get("webhook"),
            "feedback_keys": request.get("feedback_keys"),
            "temporary": bool(request.get("temporary")),
            "subgraphs": bool(request.get("stream_subgraphs")),
            "resumable": True,
            "checkpoint_during": True,
            "durability": request.get("durability") or "async",
        },
        "multitask_strategy": row["strategy"],
        "created_at": when(row["created_at"]),
        "updated_at": when(row["updated_at"]),
        "langsmith_session_name": None,
    }


def _user(user: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Returns who a run is for, without the rest of what is known of them: that may be credentials."""
    if user is None:
        return _NOBODY
    return {"user_id": user["identity"], "langgraph_auth_user_id": user["identity"]}


def _run_config(
    row: DictRow, request: Mapping[str, Any], metadata: Mapping[str, Any], ids: Mapping[str, str]
) -> dict[str, Any]:
    given = cast("Mapping[str, Any]", request.get("config") or {})
    configurable = {
        **cast("Mapping[str, Any]", given.get("configurable") or {}),
        **_user(cast("Mapping[str, Any] | None", request.get("user"))),
        "run_id": str(row["turn_id"]),
        "thread_id": str(row["thread_id"]),
        **ids,
    }
    return {
        **given,
        "configurable": configurable,
        "metadata": {
            **cast("Mapping[str, Any]", given.get("metadata") or {}),
            **metadata,
            "langgraph_version": LANGGRAPH_VERSION,
        },
    }
