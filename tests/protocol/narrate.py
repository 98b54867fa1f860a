"""An event as one line that a table can hold: what does not depend on ids, times and versions.

Which keys the data has is told by `test_shapes.py`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from tests.api.serving import Event

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_MESSAGES = frozenset({"human", "ai", "tool", "AIMessageChunk"})


def narrated(events: Sequence[Event]) -> list[str]:
    """Returns a line for each event."""
    return [_line(event) for event in events]


def _line(event: Event) -> str:
    name = _UUID.sub("ID", event.name)
    kind = name.split("|")[0]
    return f"{name}: {_TELLS.get(kind, brief)(event.data)}"


def brief(value: Any) -> str:
    """Returns a value in short: a message is its type and text, an interrupt its question."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        if fields.get("type") in _MESSAGES:
            made = cast("list[dict[str, Any]]", fields.get("tool_calls") or [])
            calls = "".join(f" {call['name']}()" for call in made)
            return f"<{fields['type']} {fields['content']}{calls}>"
        if {"id", "value"} <= fields.keys() <= {"id", "value", "response_schema"}:
            return f"?{brief(fields['value'])}"
        return "{" + " ".join(f"{key}={brief(one)}" for key, one in fields.items()) + "}"
    if isinstance(value, list):
        return "[" + " ".join(brief(one) for one in cast("list[Any]", value)) + "]"
    return _UUID.sub("ID", str(value))


def _metadata(data: Any) -> str:
    return f"attempt {data['attempt']}"


def _token(data: Any) -> str:
    message, metadata = data
    return f"{brief(message)} of {metadata['langgraph_node']}"


def _announced(data: Any) -> str:
    ((_, told),) = data.items()
    return f"of {told['metadata']['langgraph_node']}"


def _task(data: Any) -> str:
    if "triggers" in data:
        return f"{data['name']} starts with {brief(data['input'])}"
    ended = {key: data[key] for key in ("error", "result", "interrupts") if data[key]}
    return f"{data['name']} ends with {brief(ended)}"


def _checkpoint(data: Any) -> str:
    return f"{_place(data)} {brief(data['values'])}"


def _place(data: Any) -> str:
    return f"{data['metadata']['source']} {data['metadata']['step']} next {brief(data['next'])}"


def _debug(data: Any) -> str:
    payload = data["payload"]
    tells = _place(payload) if data["type"] == "checkpoint" else payload["name"]
    return f"{data['step']} {data['type']}: {tells}"


def _event(data: Any) -> str:
    told = [brief(one) for key, one in data["data"].items() if key in ("chunk", "output")]
    return " ".join([f"{data['event'].removeprefix('on_')} {len(data['parent_ids'])}/{data['name']}", *told])


def _error(data: Any) -> str:
    return f"{data['error']}: {data['message'].splitlines()[0].partition('. ')[0]}"


_TELLS = {
    "metadata": _metadata,
    "messages": _token,
    "messages/metadata": _announced,
    "tasks": _task,
    "checkpoints": _checkpoint,
    "debug": _debug,
    "events": _event,
    "error": _error,
}
