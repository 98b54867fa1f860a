"""Owns what earlier attempts of a turn's tasks streamed, and takes it back when such a task starts again.

Tokens and custom events are committed as they come, before anybody knows whether their task gets to its end. An attempt
that was lost has said something that the next attempt says anew, in other words and under other message ids. When the
task starts again its old tokens and custom events are deleted, so that who reads later finds the turn as if it had not
been disturbed; and each message is removed by the protocol's own `remove` message, for those who have it on their
screens. Both are one transaction: a client has, or gets, one of them. Next: `adapter/writer.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from langchain_core.messages import RemoveMessage

from adapter.store.event_log import Event, append_events
from adapter.store.pool import Connection, Pool, fetch_all
from adapter.store.sql import query
from adapter.wire import dumps
from adapter.writer import FencedWriter


class Streamed:
    """What stands in a turn's log of tasks that may start again.

    Args:
        writer: the attempt's.
        tasks: checkpoint namespaces of the tasks that streamed something; each is one task, whatever ran inside it.
        seen: ids of messages that are not streamed once more; those that are taken back are dropped from it.
    """

    def __init__(self, writer: FencedWriter, tasks: frozenset[str], seen: set[int | str]) -> None:
        self._writer = writer
        self._tasks = tasks
        self.seen = seen

    async def starts(self, task: str) -> None:
        """Takes back what the task streamed when it was started before; durable when it returns.

        Raises:
            StaleAttempt: a newer attempt holds the claim.
            StoreUnavailable: retryable.
        """
        if any(one == task or one.startswith(f"{task}|") for one in self._tasks):
            await self._writer.write(lambda conn: self._take_back(conn, task))

    async def _take_back(self, conn: Connection, task: str) -> None:
        turn_id = self._writer.turn_id
        cursor = await conn.execute(query("take_back"), {"turn_id": turn_id, "task": task})
        rows = await cursor.fetchall()
        self.seen.difference_update(row["key"] for row in rows)
        # In mode "messages" one message has events of several names.
        removals = {(event.name, event.key): event for event in map(_removal, rows)}
        if removals:
            await append_events(conn, turn_id, list(removals.values()))


async def streamed(pool: Pool, writer: FencedWriter, seen: set[int | str], *, again: bool) -> Streamed:
    """Reads what earlier attempts streamed, if there were any.

    Args:
        pool: PostgreSQL.
        writer: the attempt's.
        seen: see `Streamed`.
        again: whether something of the turn may have been started before by an attempt that was lost.
    """
    rows = await fetch_all(pool, "streamed_tasks", turn_id=writer.turn_id) if again else []
    return Streamed(writer, frozenset(row["task"] for row in rows), seen)


def _removal(row: Mapping[str, Any]) -> Event:
    removed = RemoveMessage(id=row["key"])
    if row["event"].startswith("messages/"):
        return Event("messages/complete", dumps([removed]), row["key"])
    return Event(row["event"], dumps([removed, orjson.loads(row["data"])[1]]), row["key"])
