"""FR-19: cancel with wait=1 returned while the run went on. Here it returns when nothing of the turn runs any more."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from psycopg import sql
from typing_extensions import TypedDict

from adapter.effects import effect, effect_sync
from tests.api.serving import serving

pytestmark = pytest.mark.slow


class State(TypedDict, total=False):
    done: bool


class Slow:
    """A node that takes its time to stop: it writes while it does, in its stream and in its journal."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.told: list[str] = []

    async def asynchronous(self, state: State) -> Any:
        write = get_stream_writer()
        self.begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.3)
            await effect("release", self._release)
            write({"told": "released"})
            self.told.append("cleaned up")

    async def _release(self, *, idempotency_key: str) -> str:
        await asyncio.sleep(0.3)
        self.told.append("released")
        return idempotency_key

    def synchronous(self, state: State) -> Any:
        write = get_stream_writer()
        self.begun.set()
        try:
            for _ in range(6000):
                time.sleep(0.01)
        finally:
            time.sleep(0.3)
            effect_sync("release", self._release_sync)
            write({"told": "released"})
            self.told.append("cleaned up")

    def _release_sync(self, *, idempotency_key: str) -> str:
        time.sleep(0.3)
        self.told.append("released")
        return idempotency_key


def _graph(node: Callable[..., Any], *, inside: bool) -> Any:
    builder: Any = StateGraph(State)
    builder.add_node("node", node).add_edge(START, "node")
    if not inside:
        return builder.compile()
    around: Any = StateGraph(State)
    return around.add_node("inside", builder.compile(checkpointer=False)).add_edge(START, "inside").compile()


def _everything(database_url: str) -> dict[str, str]:
    """Returns a digest of each table's rows."""
    with psycopg.connect(database_url) as conn:
        tables = conn.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname IN ('public', 'turns') ORDER BY 1, 2"
        ).fetchall()
        digest = sql.SQL("SELECT md5(string_agg(t::text, chr(10) ORDER BY t::text)) FROM {} t")
        return {
            f"{schema}.{table}": str(conn.execute(digest.format(sql.Identifier(schema, table))).fetchone())
            for schema, table in tables
        }


@pytest.mark.parametrize("kind", ["asynchronous", "synchronous"])
@pytest.mark.parametrize("inside", [False, True])
async def test_it_returns_when_the_turn_has_stopped(
    database_url: str, temporal: str, kind: str, inside: bool
) -> None:
    slow = Slow()
    graph = _graph(slow.asynchronous if kind == "asynchronous" else slow.synchronous, inside=inside)
    async with serving(database_url, temporal, {"graph": graph}) as api:
        thread = await api.thread()
        run = await api.run(thread, input={"done": False}, stream_mode="custom", stream_subgraphs=True)
        assert await asyncio.get_running_loop().run_in_executor(None, slow.begun.wait, 30)

        answered = await api.http.post(f"/threads/{thread}/runs/{run}/cancel", params={"wait": "1"})
        told, stored = list(slow.told), _everything(database_url)

        assert (answered.status_code, answered.json()) == (200, {})
        assert told == ["released", "cleaned up"]
        assert await api.status(thread, run) == "interrupted"
        (journaled,) = (await api.http.get(f"/threads/{thread}/effects")).json()
        assert journaled["state"] == "finished"
        assert (await api.stack.events(run))[-1][1] == {"told": "released"}

        # Whatever went on would have had the time of another cancelled turn to write.
        other = await api.thread()
        slow.begun.clear()
        second = await api.run(other, input={"done": False})
        assert await asyncio.get_running_loop().run_in_executor(None, slow.begun.wait, 30)
        await api.sdk.runs.cancel(other, second, wait=True)
        await api.sdk.threads.delete(other)
        assert _everything(database_url) == stored
        assert slow.told == told * 2
