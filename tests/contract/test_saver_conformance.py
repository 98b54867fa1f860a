"""LangGraph's own conformance suite passes on the fenced saver, whose writes all run under a claim."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate

from adapter.saver import FencedSaver
from adapter.store.claims import Claim, take
from adapter.store.pool import create_pool
from adapter.store.requests import create_thread
from adapter.writer import FencedWriter


async def test_fenced_saver_conforms(database_url: str) -> None:
    thread = str(uuid.uuid4())

    @checkpointer_test(name="FencedSaver")
    async def fenced() -> AsyncGenerator[BaseCheckpointSaver[str], None]:
        async with create_pool(database_url, size=4, name="test") as pool:
            await create_thread(pool, thread, {}, if_exists="do_nothing")
            claim = Claim(thread, "", 1, 1)
            async with pool.connection() as conn:
                await take(conn, claim, pool)
            async with FencedWriter(pool, claim, str(uuid.uuid4()), token_delay=0) as writer:
                yield FencedSaver(pool, writer)

    report = await validate(fenced)

    assert report.passed_all_base(), report.to_dict()
