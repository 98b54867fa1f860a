"""After an outage of PostgreSQL an attempt ends once the pool works again, so that the next one does not fail, too."""

from __future__ import annotations

import asyncio

import pytest

from adapter.errors import StoreUnavailable
from adapter.store.pool import create_pool, fetch_one, until_back
from tests.proxy import to_postgres


@pytest.mark.slow
async def test_it_waits_and_replaces_broken_connections(database_url: str) -> None:
    async with to_postgres(database_url) as (link, url), create_pool(url, size=4, name="test") as pool:
        await asyncio.gather(*(fetch_one(pool, "ping") for _ in range(4)))
        opened = link.accepted
        assert opened > 1
        await link.refuse()
        with pytest.raises(StoreUnavailable):
            await fetch_one(pool, "ping")
        waiting = asyncio.create_task(until_back(pool, 60))
        await asyncio.wait({waiting}, timeout=1)
        assert not waiting.done()

        await link.heal()
        await waiting
        for _ in range(2 * opened):
            assert await fetch_one(pool, "ping")


async def test_it_gives_up(database_url: str) -> None:
    async with to_postgres(database_url) as (link, url), create_pool(url, size=4, name="test") as pool:
        await link.refuse()
        await until_back(pool, 0.5)
