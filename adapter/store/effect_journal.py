"""Owns the journal of effects: what was started, what finished, and with which result.

States and their transitions stand in the migration; every write runs under the attempt's claim (I5).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from adapter.store.pool import Connection
from adapter.store.sql import query
from adapter.writer import FencedWriter

_SERDE = JsonPlusSerializer()


@dataclass(frozen=True, slots=True)
class Started:
    """What the journal knew when an effect was started.

    Attributes:
        finished: an earlier attempt recorded its outcome.
        unknown: an earlier attempt started it and nobody recorded an outcome.
        undone: it was compensated; under this key the provider would replay what was given back.
        settled: a person said what became of it.
        attempts: how often it was started, this time included.
        started_at: when it was started first.
        result: the recorded outcome, if finished.
    """

    finished: bool
    unknown: bool
    undone: bool
    settled: bool
    attempts: int
    started_at: datetime
    result: Any


async def start(
    writer: FencedWriter, *, key: str, name: str, node: str, mode: str, compensate: str | None
) -> Started:
    """Journals that an effect is about to happen; durable when this returns.

    Args:
        writer: the attempt's.
        key: the effect's.
        name: the effect's name.
        node: where it happens.
        mode: "keyed" or "once".
        compensate: where the function is that undoes it, as `module:qualname`.

    Raises:
        StaleAttempt: a newer attempt holds the claim; the effect must not happen.
    """
    rows: list[Started] = []

    async def run(conn: Connection) -> None:
        cursor = await conn.execute(
            query("start_effect"),
            {
                "key": key,
                "thread_id": writer.claim.thread_id,
                "turn_id": writer.turn_id,
                "name": name,
                "node": node,
                "mode": mode,
                "compensate": compensate,
            },
        )
        row = await cursor.fetchone()
        assert row is not None
        # What could not be given back, or was about to be, happened: it must not happen twice.
        finished = row["state"] in ("finished", "compensating", "uncompensated")
        result = _SERDE.loads_typed((row["result_type"], row["result"])) if finished else None
        rows.append(
            Started(
                finished=finished,
                unknown=row["before"] == "started",
                undone=row["state"] == "compensated",
                settled=row["settled"],
                attempts=row["attempts"],
                started_at=row["started_at"],
                result=result,
            )
        )

    await writer.write(run)
    return rows[0]


async def finish(writer: FencedWriter, *, key: str, result: Any, exact: bool = False) -> None:
    """Journals an effect's outcome; durable when this returns.

    A result that LangGraph's serializer cannot store is journaled as its `repr`: it happened all the same.

    Raises:
        TypeError: after journaling, when the result can be returned to nobody again and `exact` asks for that.
    """
    unstorable: Exception | None = None
    try:
        kind, data = _SERDE.dumps_typed(result)
    except Exception as exc:
        unstorable = exc
        kind, data = _SERDE.dumps_typed(repr(result))

    async def run(conn: Connection) -> None:
        await conn.execute(query("finish_effect"), {"key": key, "result_type": kind, "result": data})

    await writer.write(run)
    if exact and unstorable is not None:
        raise TypeError(
            f'the result of an effect in mode "once" must be storable: {unstorable}'
        ) from unstorable


async def settle(writer: FencedWriter, *, key: str, happened: bool, result: Any) -> None:
    """Journals what a person said became of an effect of unknown outcome; durable when this returns."""
    kind, data = _SERDE.dumps_typed(result)
    state = "finished" if happened else "failed"

    async def run(conn: Connection) -> None:
        await conn.execute(
            query("settle_effect"), {"key": key, "state": state, "result_type": kind, "result": data}
        )

    await writer.write(run)


async def fail(writer: FencedWriter, *, key: str, error: str) -> None:
    """Journals that an effect's call raised; what the provider did is for its key to say."""

    async def run(conn: Connection) -> None:
        await conn.execute(query("fail_effect"), {"key": key, "error": error})

    await writer.write(run)
