"""Owns the undoing of finished effects: their `compensate=` functions, called in reverse order after their turn failed.

An attempt ends at the first compensation that raises; the next one, which Temporal schedules after a delay, goes on
there. What was done, how often it was tried and what was given up stands in the effect journal.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
from collections.abc import Callable
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from psycopg.rows import DictRow

from adapter import faultpoints, keys
from adapter.cancelling import being_cancelled
from adapter.errors import CompensationFailed
from adapter.store import turns
from adapter.store.claims import Claim, take
from adapter.store.pool import Connection, Pool, fetch_all, store_errors
from adapter.store.sql import query
from adapter.writer import FencedWriter

log = logging.getLogger("turns")

_SERDE = JsonPlusSerializer()


def reference(call: Callable[..., Any]) -> str:
    """Returns where a function is, as `module:qualname`, so that another process finds it.

    Raises:
        TypeError: it cannot be found there: a lambda, a method, a function inside another one.
    """
    where = f"{getattr(call, '__module__', None)}:{getattr(call, '__qualname__', None)}"
    try:
        found = resolve(where)
    except (ImportError, AttributeError, ValueError):
        found = None
    if found is not call:
        raise TypeError(
            f"compensate={where} must be a function at the top of a module, because another process may have to call it"
        )
    return where


def resolve(where: str) -> Callable[..., Any]:
    """Returns the function that `reference` named.

    Raises:
        ImportError: there is no such module.
        AttributeError: there is nothing of that name in it.
    """
    module, _, qualname = where.partition(":")
    found: Any = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


async def undo(
    pool: Pool, claim: Claim, turn_id: str, *, continued: bool, attempts: int, seconds: float
) -> None:
    """Compensates what a turn did to the world, the last first.

    Args:
        pool: PostgreSQL.
        claim: the attempt's, on the whole thread.
        turn_id: the turn that failed or is rolled back.
        continued: whether effects of the turns that it continued are undone, too.
        attempts: calls of one compensation before it is given up.
        seconds: that one call may take.

    Raises:
        CompensationFailed: one raised and is to be called again; retryable.
        StaleAttempt: a newer attempt took over; not retryable.
    """
    async with store_errors(), pool.connection() as conn, conn.transaction():
        await take(conn, claim, pool)
        # A turn that ended well while it was told to stop keeps what it did. After the claim no attempt can end it.
        if continued or await turns.is_open(conn, turn_id):
            await conn.execute(query("plan_compensation"), {"turn_id": turn_id, "continued": continued})
    effects = await fetch_all(pool, "effects_to_undo", turn_id=turn_id)
    async with FencedWriter(pool, claim, turn_id, token_delay=0) as writer:
        for effect in effects:
            await _undo_one(writer, effect, attempts, seconds)


async def _undo_one(writer: FencedWriter, effect: DictRow, attempts: int, seconds: float) -> None:
    key, where = effect["key"], effect["compensate"]
    if effect["compensations"] >= (1 if effect["mode"] == "once" else attempts):
        # Its process died with the call, too. In mode "once", without a key, calling again might undo twice.
        await _end(writer, effect, "no call of its compensation ended")
        return
    await _write(writer, "start_compensation", key=key)
    try:
        result = _SERDE.loads_typed((effect["result_type"], bytes(effect["result"])))
        extra = {"idempotency_key": keys.derive_compensation(key)} if effect["mode"] == "keyed" else {}
        async with asyncio.timeout(seconds):
            await _call(resolve(where), result, extra)
    except BaseException as exc:
        if being_cancelled():
            raise
        log.warning("compensation %s of effect %s (%s) raised %r", where, effect["name"], key, exc)
        if effect["compensations"] + 1 < attempts:
            raise CompensationFailed(f"compensation of effect {effect['name']} ({key}) failed") from exc
        await _end(writer, effect, type(exc).__name__)
        return
    faultpoints.reached(faultpoints.AFTER_COMPENSATION)
    await _end(writer, effect, None)


async def _call(call: Callable[..., Any], result: Any, extra: dict[str, str]) -> None:
    if inspect.iscoroutinefunction(call):
        await call(result, **extra)
        return
    returned = await asyncio.to_thread(call, result, **extra)
    if inspect.isawaitable(returned):
        await returned


async def _end(writer: FencedWriter, effect: DictRow, error: str | None) -> None:
    state = "compensated" if error is None else "uncompensated"
    await _write(writer, "end_compensation", key=effect["key"], state=state, error=error)
    if error is None:
        log.info("effect %s (%s) of node %s compensated", effect["name"], effect["key"], effect["node"])
    else:
        log.error("effect %s (%s) could not be compensated: %s", effect["name"], effect["key"], error)


async def _write(writer: FencedWriter, name: str, **params: Any) -> None:
    async def run(conn: Connection) -> None:
        await conn.execute(query(name), params)

    await writer.write(run)
