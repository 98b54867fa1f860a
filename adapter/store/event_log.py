"""Owns the events of a turn as they are stored: numbered in order, for any number of readers.

Tokens of many turns are stored by `adapter/event_batches.py`. Next: `api/event_stream.py` reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from adapter.store.pool import Connection
from adapter.store.sql import query

Need: TypeAlias = tuple[str, ...]


@dataclass(slots=True)
class Event:
    """One line of a turn's event log, on its way there.

    Attributes:
        name: the event's name on the wire.
        data: its JSON.
        key: what it tells of (a task, checkpoint or message id), or None.
        need: the write it must not be stored before, or None.
        task: of a token or a custom event, which may be taken back: the checkpoint namespace of its task.
    """

    name: str
    data: str
    key: str | None = None
    need: Need | None = None
    task: str | None = None
    deadline: float = 0.0


async def append_events(conn: Connection, turn_id: str, events: Sequence[Event]) -> None:
    """Stores events under the next offsets of a turn, inside the caller's transaction, and wakes readers.

    Args:
        conn: a connection in a transaction.
        turn_id: the turn.
        events: in order.
    """
    await conn.execute(
        query("append_events"),
        {
            "turn_id": turn_id,
            "count": len(events),
            "events": [event.name for event in events],
            "keys": [event.key for event in events],
            "tasks": [event.task for event in events],
            "datas": [event.data for event in events],
        },
    )
