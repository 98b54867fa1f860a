"""A turn whose events were deleted: its stream is an orderly empty one, its outcome is told all the same."""

from __future__ import annotations

import asyncio

from adapter.store import turns
from adapter.store.event_log import Event, append_events
from adapter.wire import dumps
from tests.api.graphs import failing, steps
from tests.api.serving import Serving, first_events, parse, serving
from workflows import names

RETENTION_SECONDS = 0.001
KEY = {"Idempotency-Key": "k"}


async def _prune(api: Serving) -> None:
    running = api.stack
    deleted = await running.client.execute_workflow(
        names.PRUNE_WORKFLOW,
        id=f"prune-{running.settings.task_queue}",
        task_queue=running.settings.task_queue,
        result_type=int,
    )
    assert deleted > 0


async def test_rejoin(database_url: str, temporal: str) -> None:
    async with serving(
        database_url, temporal, {"graph": steps("a", "b")}, event_retention=RETENTION_SECONDS / 86_400
    ) as api:
        thread = await api.thread()
        body = {"assistant_id": "graph", "input": {"trail": ["x"]}}
        first = await api.http.post(f"/threads/{thread}/runs/stream", json=body, headers=KEY)
        events, stream = parse(first.content), first.headers["location"]
        await _prune(api)

        for last in ("-1", "1", str(len(events) - 1), str(len(events)), "999999", ""):
            again = await api.http.get(stream, headers={"Last-Event-ID": last})
            assert (again.status_code, again.content) == (200, b"")
        repeated = await api.http.post(f"/threads/{thread}/runs/stream", json=body, headers=KEY)
        assert (repeated.status_code, repeated.content) == (200, b"")
        joined = await api.http.get(stream.removesuffix("/stream") + "/join")
        assert joined.json() == {"trail": ["x", "a", "b"]}
        assert (await api.http.get(stream.removesuffix("/stream"))).json()["status"] == "success"


async def test_a_turn_that_is_tried_again(database_url: str, temporal: str) -> None:
    """The reader waits for what is new, not for what was deleted."""
    async with serving(
        database_url, temporal, {"graph": failing()}, event_retention=RETENTION_SECONDS / 86_400
    ) as api:
        thread = await api.thread()
        run = await api.run(thread, input={"trail": []}, stream_mode=["custom"])
        last = (await api.stack.ended(run))["last_offset"]
        await _prune(api)
        pool = api.stack.pool
        async with pool.connection() as conn:
            await conn.execute(
                "UPDATE turns.turn SET status = 'running', updated_at = now() WHERE turn_id = %s", (run,)
            )
        url = f"/threads/{thread}/runs/{run}/stream"
        async with api.http.stream("GET", url, headers={"Last-Event-ID": "-1"}) as answered:
            lines = answered.aiter_raw()
            async with asyncio.timeout(10):
                assert b"heartbeat" in await anext(lines)
                async with pool.connection() as conn, conn.transaction():
                    await append_events(conn, run, [Event("custom", dumps("again"))])
                (event,) = await first_events(lines, 1)
                assert (event.data, event.id) == ("again", str(last + 1))
                async with pool.connection() as conn, conn.transaction():
                    await turns.finish(conn, run, status="success", thread_status="idle")
                assert parse(b"".join([chunk async for chunk in lines])) == []
