"""Owns connections to PostgreSQL: one pool a process, and the one place where driver errors are wrapped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeAlias

import psycopg
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from adapter.errors import NotFound, NotStorable, Overtaken, StaleAttempt, StoreBusy, StoreUnavailable
from adapter.store.sql import query

Connection: TypeAlias = psycopg.AsyncConnection[DictRow]
Pool: TypeAlias = AsyncConnectionPool[Connection]

STALE = "TF001"  # raised by turns.assert_claim
OVERTAKEN = "TF002"  # raised by turns.renew_claim
NOT_FOUND = "TF003"  # raised by turns.not_found


# Longer than any commit takes on a database that works.
_BLOCKED_SECONDS = 2.0

# A worker waits longer than a request: an attempt that gives up runs its node again.
_WORKER_WAIT_SECONDS = 30.0


def create_pool(database_url: str, *, size: int, name: str, wait: float = _WORKER_WAIT_SECONDS) -> Pool:
    """Returns a pool that is not open yet; the caller opens it with `async with`.

    Args:
        database_url: PostgreSQL connection string.
        size: connections at most.
        name: application_name, seen in pg_stat_activity.
        wait: seconds that a caller waits for a free connection.
    """
    return AsyncConnectionPool(
        database_url,
        min_size=1,
        max_size=size,
        open=False,
        timeout=wait,
        connection_class=psycopg.AsyncConnection[DictRow],
        kwargs={
            "autocommit": True,
            "prepare_threshold": 0,
            "row_factory": dict_row,
            "application_name": name,
        },
        name=name,
    )


@contextmanager
def ending_blockers(pool: Pool, conn: Connection) -> Generator[None]:
    """Ends, while the body waits for a lock on `conn`, what has kept it waiting for too long."""
    pid, conninfo = conn.info.backend_pid, pool.conninfo
    assert isinstance(conninfo, str)
    loop = asyncio.get_running_loop()
    ending: list[asyncio.Task[None]] = []

    async def end() -> None:
        while True:
            # Not of the pool: all its connections may wait for the same.
            async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as other:
                await other.execute(query("end_blockers"), {"pid": pid})
            await asyncio.sleep(_BLOCKED_SECONDS)

    # Nearly every claim is taken at once: a timer costs less than a task.
    waits = loop.call_later(_BLOCKED_SECONDS, lambda: ending.append(loop.create_task(end())))
    try:
        yield
    finally:
        waits.cancel()
        for task in ending:
            task.cancel()


@asynccontextmanager
async def one_trip(pool: Pool) -> AsyncGenerator[Connection]:
    """Yields a connection in a transaction whose statements are sent without waiting for one another's results.

    psycopg's own `transaction()` waits for the server at its begin and its end, which costs an attempt more than all
    that it stores. Whoever reads a result in the body waits for it.

    Raises:
        as `store_errors`; nothing is stored then.
    """
    # The pool rolls back what is left open.
    async with store_errors(), pool.connection() as conn, conn.pipeline():
        await conn.execute(query("begin"))
        yield conn
        await conn.execute(query("commit"))


async def until_back(pool: Pool, seconds: float) -> None:
    """Waits until PostgreSQL answers and the pool's connections that broke are replaced, or the time is over."""
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    await pool.check()
                    async with store_errors(), pool.connection(timeout=1) as conn:
                        await conn.execute(query("ping"))
                    return
                except StoreUnavailable:
                    await asyncio.sleep(0.2)
    except TimeoutError:
        pass


@asynccontextmanager
async def store_errors() -> AsyncGenerator[None]:
    """Wraps the driver's errors.

    Raises:
        StaleAttempt: the fence refused the transaction; not retryable.
        Overtaken: it refused to renew a claim; retryable.
        StoreUnavailable: the connection or the server is gone; retryable.
        StoreBusy: no connection came free in time; retryable.
        NotFound: the thread was deleted, or what a statement needs is not there; not retryable.
        NotStorable: PostgreSQL cannot hold a value; not retryable.
    """
    try:
        yield
    except psycopg.Error as exc:
        if exc.sqlstate == STALE:
            raise StaleAttempt(exc.diag.message_primary or "stale attempt") from None
        if exc.sqlstate == OVERTAKEN:
            raise Overtaken(exc.diag.message_primary or "overtaken") from None
        if exc.sqlstate == NOT_FOUND:
            raise NotFound(exc.diag.message_primary or "not found") from None
        if isinstance(exc, PoolTimeout):
            raise StoreBusy(f"no connection to PostgreSQL came free: {exc}") from None
        if isinstance(exc, psycopg.errors.ProgramLimitExceeded):
            raise NotStorable("a text is too long for an index of PostgreSQL") from exc
        if isinstance(exc, (psycopg.OperationalError, psycopg.InterfaceError)):
            raise StoreUnavailable(f"PostgreSQL is not reachable: {type(exc).__name__}") from exc
        if isinstance(exc, psycopg.errors.ForeignKeyViolation):
            raise NotFound("the thread does not exist any more") from None
        if isinstance(exc, psycopg.DataError):
            # Above all a NUL character in a text, which neither text nor jsonb can hold.
            raise NotStorable(
                f"the state holds a value that PostgreSQL cannot store: {type(exc).__name__}"
            ) from exc
        raise


async def fetch_one(pool: Pool, name: str, /, **params: Any) -> DictRow | None:
    """Runs the named statement and returns its first row."""
    async with store_errors(), pool.connection() as conn:
        return await (await conn.execute(query(name), params)).fetchone()


async def fetch_all(pool: Pool, name: str, /, **params: Any) -> list[DictRow]:
    """Runs the named statement and returns its rows."""
    async with store_errors(), pool.connection() as conn:
        return await (await conn.execute(query(name), params)).fetchall()


async def execute(pool: Pool, name: str, /, **params: Any) -> None:
    """Runs the named statement."""
    async with store_errors(), pool.connection() as conn:
        await conn.execute(query(name), params)
