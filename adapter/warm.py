"""Owns what a worker remembers of a turn between two of its activities: the channel values it has just stored or read.

Each activity of a turn loads the thread's state, most of which the one before has just written. A value is known by its
channel's version, which LangGraph makes unique, so a remembered one is the one that PostgreSQL holds, or is not used.
What is taken is taken out: an attempt that fails may have changed a value in place (as nodes of one plain run can), so
only one that came to its end gives its values back, and the next attempt of a failed one reads everything anew.
Branches that run side by side share them, as parallel nodes of one plain run do.
Next: `adapter/saver.py` loads with it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, cast

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol

from adapter.store.pool import Pool
from adapter.store.sql import query

# Of an inlined value, which stands in the checkpoint itself, and of one that there is none of.
NOWHERE = object()

# (checkpoint namespace, channel) to (version, value)
Values = dict[tuple[str, str], tuple[str, Any]]


class Warm:
    """The values of the turns that a worker ran last.

    Args:
        turns: how many at most; 0 remembers nothing.
    """

    def __init__(self, turns: int) -> None:
        self._most = turns
        self._by_turn: OrderedDict[str, Values] = OrderedDict()
        self._side_by_side: dict[str, frozenset[str]] = {}

    def take(self, turn_id: str) -> Values:
        """Returns what is remembered of a turn, and forgets it."""
        self._side_by_side.pop(turn_id, None)
        return self._by_turn.pop(turn_id, {})

    def share(self, turn_id: str) -> Values:
        """Returns what is remembered of a turn, for one of several branches that run side by side."""
        return dict(self._by_turn.get(turn_id, {}))

    def side_by_side(self, turn_id: str) -> frozenset[str]:
        """Returns ids of tasks of the root graph that wait for their branches; they may have ended since."""
        return self._side_by_side.get(turn_id, frozenset())

    def add(self, turn_id: str, values: Values) -> None:
        """Remembers what a branch read, unless another one that shared the values has failed: they are forgotten."""
        if turn_id in self._by_turn:
            self._by_turn[turn_id].update(values)

    def keep(self, turn_id: str, values: Values, side_by_side: frozenset[str] = frozenset()) -> None:
        """Remembers the values of a turn that goes on, and which tasks of the root graph do so."""
        self._by_turn.setdefault(turn_id, {}).update(values)
        self._by_turn.move_to_end(turn_id)
        self._side_by_side[turn_id] = side_by_side
        while len(self._by_turn) > self._most:
            oldest, _ = self._by_turn.popitem(last=False)
            self._side_by_side.pop(oldest, None)


def note(values: Values, ns: str, versions: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Adds the values of a checkpoint.

    Args:
        values: what is known.
        ns: the checkpoint's namespace.
        versions: the channels that are told of, with their versions.
        found: the checkpoint's channel values.
    """
    for channel, version in versions.items():
        value = found.get(channel, NOWHERE)
        if value is None or isinstance(value, (str, int, float, bool)):
            value = NOWHERE
        values[ns, channel] = (str(version), value)


async def load(
    pool: Pool, serde: SerializerProtocol, thread_id: str, ns: str, values: Values
) -> CheckpointTuple | None:
    """Loads the newest checkpoint of a namespace with its pending writes; of its values, those that are not known."""
    known = {channel: version for (where, channel), (version, _) in values.items() if where == ns}
    params = {
        "thread_id": thread_id,
        "ns": ns,
        "channels": list(known),
        "versions": list(known.values()),
    }
    async with pool.connection() as conn:
        cursor = await conn.execute(query("load_checkpoint"), params, binary=True)
        row = await cursor.fetchone()
    if row is None:
        return None
    stored = row["checkpoint"]
    found = dict(stored.get("channel_values") or {})
    for channel, version in stored["channel_versions"].items():
        if known.get(channel) == version and (value := values[ns, channel][1]) is not NOWHERE:
            found[channel] = value
    for channel, kind, blob in row["blobs"] or ():
        if kind != b"empty":
            found[channel.decode()] = serde.loads_typed((kind.decode(), blob))
    writes = [
        (task.decode(), channel.decode(), serde.loads_typed((kind.decode(), blob)))
        for task, channel, kind, blob in row["writes"] or ()
    ]
    address = {"thread_id": thread_id, "checkpoint_ns": ns}
    parent = row["parent_checkpoint_id"]
    return CheckpointTuple(
        {"configurable": {**address, "checkpoint_id": row["checkpoint_id"]}},
        cast("Any", {**stored, "channel_values": found}),
        row["metadata"],
        {"configurable": {**address, "checkpoint_id": parent}} if parent else None,
        writes,
    )
