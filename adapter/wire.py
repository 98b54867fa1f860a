"""Owns the JSON form of what LangGraph produces, as the LangGraph Agent Server's clients expect it."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Mapping
from enum import Enum
from typing import Any, cast

import orjson
from langgraph.types import Command, Interrupt, Send
from pydantic import BaseModel

_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY


def dumps(value: Any) -> str:
    """Returns compact JSON of anything a graph may hold: messages, models, dataclasses, errors, sets, bytes.

    What has no JSON form of its own appears as its `repr`, so that a stream never fails on one odd value.
    """
    try:
        return orjson.dumps(value, default=_default, option=_OPTIONS).decode()
    except (TypeError, ValueError):
        # Lone surrogates and integers beyond 64 bits: JSON allows them, orjson does not.
        return json.dumps(_plain(value), ensure_ascii=True, separators=(",", ":"), default=repr)


def error_json(exc: BaseException) -> dict[str, str]:
    """Returns `{"error": class name, "message": text}`, in text that JSON and PostgreSQL can hold."""
    try:
        text = str(exc)
    except Exception:  # an exception of the user's whose text fails, too
        text = ""
    text = text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()
    return {"error": type(exc).__name__, "message": text}


def _default(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump()
    if isinstance(value, Interrupt):
        return interrupt_json(cast("Interrupt[Any]", value))
    if isinstance(value, BaseException):
        return error_json(value)
    if isinstance(value, (set, frozenset)):
        return list(cast("set[Any]", value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(cast("bytes", value))).decode()
    if isinstance(value, Send):
        return {"node": value.node, "args": value.arg}
    if isinstance(value, Command):
        command = cast("Command[Any]", value)
        return {
            "goto": cast("Any", command.goto),
            "update": command.update,
            "resume": command.resume,
            "graph": command.graph,
        }
    if hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    if isinstance(value, tuple):
        return list(cast("tuple[Any, ...]", value))
    if hasattr(value, "model_dump"):
        return value.model_dump()
    return repr(value)


def interrupt_json(interrupt: Interrupt[Any]) -> dict[str, Any]:
    """Returns an interrupt as streams carry it."""
    return {"value": interrupt.value, "id": interrupt.id, "response_schema": interrupt.response_schema}


def debug_json(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a debug event as streams carry it: a checkpoint's has the addresses that a thread's state has, too."""
    if event["type"] != "checkpoint":
        return event
    payload = event["payload"]
    more = {
        "tasks": [_debug_task(task) for task in payload["tasks"]],
        "checkpoint": _address(payload["config"]),
        "parent_checkpoint": _address(payload["parent_config"]),
    }
    return {**event, "payload": {**payload, **more}}


def _debug_task(task: Mapping[str, Any]) -> Mapping[str, Any]:
    if not task.get("state"):
        return task
    return {**{k: v for k, v in task.items() if k != "state"}, "checkpoint": _address(task["state"])}


def checkpoint_json(configurable: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a checkpoint's address, of what LangGraph says under `configurable`."""
    keys = ("checkpoint_id", "thread_id", "checkpoint_ns", "checkpoint_map")
    return {key: configurable[key] for key in keys if key in configurable}


def _address(config: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return None if config is None else checkpoint_json(config["configurable"])


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(v) for v in cast("list[Any]", value)]
    if isinstance(value, Enum):
        return _plain(value.value)
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    converted = _default(value)
    return converted if isinstance(converted, str) else _plain(converted)
