"""Owns `turns abandoned` and `turns effects`: what operators ask the database, as a table or as JSON.

Only the database is needed: neither the API nor Temporal has to run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from adapter.errors import ConfigError, NotFound, StoreUnavailable
from adapter.store import reports, requests, schema
from adapter.store.only import EVERYTHING
from adapter.store.pool import Pool, create_pool
from adapter.wire import dumps
from api.shapes import abandoned_json, effects_json
from deploy.environment import Flags, settings_for, with_database

T = TypeVar("T")

_WHY = {
    None: "",
    "unknown": "its turn ended and nobody recorded the outcome",
    "asked": "waits for a person to say whether it happened",
    "compensating": "its compensation is under way, or was cut off",
    "uncompensated": "its compensation was given up",
}


def abandoned(flags: Flags, *, limit: int, as_json: bool) -> None:
    """Writes the threads whose last turn failed or was cancelled, with the effects it had done.

    Raises:
        ConfigError: no PostgreSQL is there to use, or its schema is another version's.
    """
    found = abandoned_json(_read(flags, lambda pool: reports.abandoned(pool, only=EVERYTHING, limit=limit)))
    if as_json:
        click.echo(dumps(found))
        return
    if not found:
        click.echo("no abandoned work")
        return
    heads = ("THREAD", "RUN", "ENDED (UTC)", "STATUS", "ERROR")
    rows = [
        (f["thread_id"], f["run_id"], _second(f["ended_at"]), f["status"], f["error"] or "") for f in found
    ]
    head, *lines = _table(heads, rows)
    click.echo(head)
    for line, thread in zip(lines, found, strict=True):
        click.echo(line)
        for effect in thread["effects"]:
            click.echo(
                f"    {effect['name']} in {effect['node']}: {effect['state']}, "
                f"attempts {effect['attempts']}, key {effect['key']}"
            )


def effects(flags: Flags, *, thread_id: str | None, unsettled: bool, limit: int, as_json: bool) -> None:
    """Writes journaled effects, the newest first.

    Raises:
        ConfigError: there is no such thread, no PostgreSQL to use, or its schema is another version's.
    """

    async def read(pool: Pool) -> list[Any]:
        if thread_id is not None:
            try:
                await requests.get_thread(pool, thread_id)
            except NotFound:
                raise ConfigError(f"there is no thread {thread_id}") from None
        return await reports.effects(pool, thread_id=thread_id, unsettled=unsettled, limit=limit)

    found = effects_json(_read(flags, read))
    if as_json:
        click.echo(dumps(found))
        return
    if not found:
        click.echo("no unsettled effects" if unsettled else "no effects")
        return
    heads = ("THREAD", "EFFECT", "NODE", "STATE", "ATTEMPTS", "CHANGED (UTC)", "KEY", "UNSETTLED")
    columns = ("thread_id", "name", "node", "state", "attempts")
    rows = [
        (*(str(f[c]) for c in columns), _second(f["updated_at"]), f["key"], _WHY[f["unsettled"]])
        for f in found
    ]
    for line in _table(heads, rows):
        click.echo(line)


def _read(flags: Flags, read: Callable[[Pool], Awaitable[T]]) -> T:
    settings = with_database(settings_for(flags, project_needed=False))
    url = settings.database_url
    assert url is not None

    async def run() -> T:
        await schema.check(url)
        async with create_pool(url, size=1, name="turns-report") as pool:
            return await read(pool)

    try:
        return asyncio.run(run())
    except StoreUnavailable as exc:
        raise ConfigError(f"{exc}; start it, or correct DATABASE_URL") from None


def _second(moment: str) -> str:
    return datetime.fromisoformat(moment).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (heads, *rows)
    ]
