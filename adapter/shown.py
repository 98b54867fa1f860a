"""Owns what an entry of a turn's graph knows of what the turn has shown already, so that nothing is shown twice.

Next: `adapter/tap.py`, which drops it; `adapter/streamed.py`, which takes back what a lost attempt streamed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapter.entry import Entry
from adapter.run_events import NAME as EVENTS
from adapter.run_events import RunEvents
from adapter.store.event_log import Event
from adapter.store.pool import Pool, fetch_all
from adapter.store.turns import TurnRow
from adapter.streamed import Streamed, streamed
from adapter.tap import Asked
from adapter.wire import dumps
from adapter.writer import FencedWriter

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Shown:
    """What the turn has shown.

    Attributes:
        keys: (event, key) of what an earlier attempt of this begin has stored; nothing for other entries.
        streamed: what attempts that were lost have streamed.
        run_events: what takes LangChain's own events, if they are asked for.
    """

    keys: frozenset[tuple[str, str | None]]
    streamed: Streamed
    run_events: RunEvents | None

    async def starts(self, task: str) -> None:
        """Takes back what an earlier attempt of a task streamed, before it starts.

        Raises:
            StaleAttempt: a newer attempt holds the claim.
            StoreUnavailable: retryable.
        """
        await self.streamed.starts(task)
        if self.run_events is not None:
            self.run_events.starts(task)


async def announce(pool: Pool, turn: TurnRow, entry: Entry, writer: FencedWriter) -> Rows:
    """Emits the first event of a turn; returns what an earlier attempt of its begin has stored.

    It is stored together with the turn's start, if that follows at once.
    """
    if not entry.first:
        return ()
    rows = await _keys(pool, turn) if entry.attempt > 1 else ()
    if not any(row["event"] == "metadata" for row in rows):
        writer.emit(Event("metadata", dumps({"run_id": turn.turn_id, "attempt": 1})))
    return rows


async def load(
    pool: Pool, turn: TurnRow, entry: Entry, writer: FencedWriter, asked: Asked, rows: Rows, *, again: bool
) -> Shown:
    """Reads what a turn has shown, as far as this entry may show it again.

    Args:
        pool: PostgreSQL.
        turn: the turn.
        entry: what is entered.
        writer: the attempt's.
        asked: what the turn's client wants to see.
        rows: what `announce` has returned.
        again: whether something of the turn may have been started before by an attempt that was lost.
    """
    run_events = None
    if asked.events:
        stored = await _keys(pool, turn) if not entry.first else rows
        known = frozenset(str(row["key"]) for row in stored if row["event"] == EVENTS)
        run_events = RunEvents(turn.turn_id, turn.graph_id, shown=known, emit=writer.emit)
    earlier = await streamed(pool, writer, await _messages(pool, turn, entry, asked), again=again)
    return Shown(frozenset((row["event"], row["key"]) for row in rows), earlier, run_events)


async def _keys(pool: Pool, turn: TurnRow) -> Rows:
    return await fetch_all(pool, "shown_keys", turn_id=turn.turn_id)


async def _messages(pool: Pool, turn: TurnRow, entry: Entry, asked: Asked) -> set[int | str]:
    """Messages of nested graphs that were streamed before must not be shown once more when the graph ends."""
    if (entry.first and entry.attempt == 1) or not (asked.messages and asked.subgraphs):
        return set()
    rows = await fetch_all(pool, "shown_messages", turn_id=turn.turn_id)
    return {row["key"] for row in rows}
