"""Owns the paths by which a search takes single values out of threads: `values.messages[-1].content`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel

_STEP = re.compile(r"\.?([^.\[\]]+)|\[(-?\d{1,9})\]")


def extracted(thread: Mapping[str, Any], paths: Mapping[str, str]) -> dict[str, Any]:
    """Returns alias to what its path leads to; None where it leads nowhere."""
    return {alias: _follow(thread, path) for alias, path in paths.items()}


def _follow(value: Any, path: str) -> Any:
    at = 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return None
        at = step.end()
        value = _inner(value, step[1], step[2])
    return value


def _inner(value: Any, name: str | None, index: str | None) -> Any:
    if index is not None:
        if not isinstance(value, Sequence) or isinstance(value, str):
            return None
        items = cast("Sequence[Any]", value)
        number = int(index)
        return items[number] if -len(items) <= number < len(items) else None
    assert name is not None
    if isinstance(value, Mapping):
        return cast("Mapping[Any, Any]", value).get(name)
    if isinstance(value, BaseModel) and name in type(value).model_fields:
        return getattr(value, name)
    return None
