"""What happened in a turn, without what names one run: ids, times, places. Two turns may be compared by it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, cast

import orjson

from adapter.wire import dumps

Happened = list[tuple[str, str]]

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_HEX = re.compile(r'"[0-9a-f]{32}"')
_DROPPED = {
    "metadata",
    "config",
    "parent_config",
    "timestamp",
    "checkpoint",
    "parent_checkpoint",
    "usage_metadata",
}


def normal(value: Any) -> str:
    """Returns a value's JSON without what names one run."""
    text = dumps(_strip(value))
    text = _UUID.sub("U", text)
    return re.sub(r"lc_run--U(-\d+)?", "lc_run", _HEX.sub('"H"', text))


def normal_name(name: str) -> str:
    """Returns an event's name, whose namespace has ids."""
    return _UUID.sub("U", name)


def _strip(value: Any) -> Any:
    if isinstance(value, dict):
        named = cast("dict[str, Any]", value)
        return {k: _strip(v) for k, v in sorted(named.items()) if k not in _DROPPED}
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if len(items) == 2 and isinstance(items[1], dict) and "langgraph_node" in items[1]:
            return [_strip(items[0]), cast("dict[str, Any]", items[1])["langgraph_node"]]
        return [_strip(v) for v in items]
    return value


def normal_state(snapshot: Any) -> Any:
    """Returns what a snapshot says of the state, its subgraphs' included."""
    return {
        "values": normal(orjson.loads(dumps(snapshot.values))),
        "next": sorted(snapshot.next),
        "interrupts": sorted(normal(orjson.loads(dumps(i.value))) for i in snapshot.interrupts),
        "step": snapshot.metadata and snapshot.metadata["step"],
        "tasks": sorted(
            (
                (t.name, repr(t.error), normal_state(t.state) if hasattr(t.state, "values") else None)
                for t in snapshot.tasks
            ),
            key=repr,
        ),
    }


def same_events(happened: Happened, expected: Happened, where: str) -> None:
    """Asserts that two turns showed the same, in the same order but for that inside a superstep."""
    states, others = _states(happened), _states(expected)
    assert states == others, "\n".join(
        [where, *map(str, states - others), "instead of", *map(str, others - states)]
    )
    got, wanted = _counted(happened), _counted(expected)
    report = "\n".join(
        [f"+ {e}" for e in (got - wanted).elements()] + [f"- {e}" for e in (wanted - got).elements()]
    )
    assert got == wanted, f"{where}\n{report}"


def _counted(events: Iterable[tuple[str, str]]) -> Counter[tuple[str, str]]:
    return Counter((normal_name(name), data) for name, data in events)


def _states(events: Happened) -> Counter[tuple[str, tuple[str, ...]]]:
    """The states that each graph went through, in order."""
    found: dict[str, list[str]] = {}
    for name, data in events:
        if name.startswith("values") and "__interrupt__" not in data:
            found.setdefault(name, []).append(data)
    return Counter((normal_name(name), tuple(states)) for name, states in found.items())
