"""Owns the database's schema: applies migrations in order and refuses a schema that this version does not know."""

from __future__ import annotations

import re
from importlib import resources
from typing import LiteralString, cast

import psycopg
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.store.postgres.aio import AsyncPostgresStore
from psycopg.rows import DictRow, dict_row

from adapter.errors import SchemaMismatch, StoreUnavailable
from adapter.store.pool import Connection
from adapter.store.sql import query

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")


def _migrations() -> list[tuple[int, str, LiteralString]]:
    folder = resources.files("adapter.store").joinpath("migrations")
    return sorted(
        (int(match[1]), match[2], cast("LiteralString", entry.read_text("utf-8")))
        for entry in folder.iterdir()
        if (match := _FILE.fullmatch(entry.name))
    )


SCHEMA_VERSION = max(version for version, _, _ in _migrations())


async def _connect(database_url: str) -> Connection:
    try:
        return await psycopg.AsyncConnection[DictRow].connect(
            database_url, autocommit=True, row_factory=dict_row
        )
    except psycopg.OperationalError as exc:
        reason = str(exc).strip().splitlines()[0]
        raise StoreUnavailable(f"cannot connect to PostgreSQL: {reason}") from None


async def _version(conn: Connection) -> int:
    row = await (await conn.execute(query("schema_exists"))).fetchone()
    if row is None or not row["exists"]:
        return 0
    row = await (await conn.execute(query("schema_version"))).fetchone()
    return int(row["version"]) if row else 0


async def migrate(database_url: str) -> None:
    """Brings the database to this version's schema; safe to run from several processes at once.

    Raises:
        SchemaMismatch: the database is ahead of this version.
        StoreUnavailable: PostgreSQL could not be reached.
    """
    async with await _connect(database_url) as conn:
        await conn.execute(query("lock_migrations"))
        try:
            await conn.execute(query("create_schema"))
            await conn.execute(query("create_migration_table"))
            version = await _version(conn)
            _refuse_ahead(version)
            for number, name, text in _migrations():
                if number > version:
                    async with conn.transaction():
                        await conn.execute(text)
                        await conn.execute(query("record_migration"), {"version": number, "name": name})
            # LangGraph's own tables, by LangGraph's own migrations (some build indexes concurrently).
            await AsyncPostgresSaver(conn).setup()
            await AsyncPostgresStore(conn).setup()
        finally:
            await conn.execute(query("unlock_migrations"))


async def check(database_url: str) -> None:
    """Compares the database's schema with the one this version works with.

    Raises:
        SchemaMismatch: it is behind (run `turns migrate`) or ahead (run a newer version).
        StoreUnavailable: PostgreSQL could not be reached.
    """
    async with await _connect(database_url) as conn:
        version = await _version(conn)
    _refuse_ahead(version)
    if version < SCHEMA_VERSION:
        raise SchemaMismatch(
            f"the database has schema {version}, this version needs {SCHEMA_VERSION}: run `turns migrate`"
        )


def _refuse_ahead(version: int) -> None:
    if version > SCHEMA_VERSION:
        raise SchemaMismatch(
            f"the database has schema {version}, this version knows only up to {SCHEMA_VERSION}: "
            "run a newer durable-turns, or use another database"
        )
