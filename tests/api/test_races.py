"""Several clients do things to one thread at once: every request is answered, and afterwards the thread is at rest.

`SEED` chooses other requests than the usual ones.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from adapter.store.pool import Pool
from tests.api.graphs import asking, failing, nested, steps
from tests.api.serving import Serving, fresh

pytestmark = pytest.mark.slow
GRAPHS = {"graph": steps("a", "b"), "asking": asking(), "failing": failing(), "nested": nested()}
THREADS, AT_ONCE, CLIENTS, REQUESTS = 18, 6, 5, 6


class Clients:
    """Clients of one thread."""

    def __init__(self, api: Serving, thread: str, chosen: random.Random) -> None:
        self._api = api
        self._url = f"/threads/{thread}"
        self._thread = thread
        self._chosen = chosen
        self.refused: list[tuple[str, int, str]] = []

    async def send(self, method: str, url: str, **request: Any) -> Any:
        """Returns the answer, or None; notes what must not be answered."""
        answered = await self._api.http.request(method, url, **request)
        if answered.status_code >= 500 or answered.status_code == 429:
            self.refused.append((f"{method} {url} {request}", answered.status_code, answered.text))
        return (
            answered.json() if answered.status_code == 200 and "application/json" in _type(answered) else None
        )

    async def run(self) -> None:
        body = {
            "assistant_id": self._chosen.choice(list(GRAPHS)),
            "input": {"trail": ["x"]},
            "multitask_strategy": self._chosen.choice(["enqueue", "interrupt", "rollback", "reject"]),
            "if_not_exists": self._chosen.choice(["create", "reject"]),
        }
        await self.send("POST", f"{self._url}/runs{self._chosen.choice(['', '/wait', '/stream'])}", json=body)

    async def _latest(self) -> list[str]:
        runs: list[dict[str, Any]] = await self.send("GET", f"{self._url}/runs") or []
        return [str(run["run_id"]) for run in runs[:1]]

    async def stop(self) -> None:
        query = f"wait={self._chosen.choice('01')}&action={self._chosen.choice(['interrupt', 'rollback'])}"
        for run in await self._latest():
            await self.send("POST", f"{self._url}/runs/{run}/cancel?{query}")

    async def delete_run(self) -> None:
        for run in await self._latest():
            await self.send("DELETE", f"{self._url}/runs/{run}")

    async def act(self) -> None:
        """Does any of it."""
        edit = {"values": {"trail": ["e"]}, "as_node": "a"}
        ids = {"thread_ids": [self._thread]}
        acts: list[tuple[float, Callable[[], Awaitable[Any]]]] = [
            (6, self.run),
            (2, self.stop),
            (1, self.delete_run),
            (1, lambda: self.send("DELETE", self._url)),
            (1, lambda: self.send("POST", f"{self._url}/copy")),
            (0.3, lambda: self.send("POST", "/threads/prune", json=ids)),
            (1, lambda: self.send("POST", "/threads/prune", json={**ids, "strategy": "keep_latest"})),
            (2, lambda: self.send("POST", f"{self._url}/state", json=edit)),
            (1, lambda: self.send("PATCH", self._url, json={"metadata": {"a": 1}})),
            (1, lambda: self.send("GET", f"{self._url}/state?subgraphs=true")),
            (1, lambda: self.send("POST", f"{self._url}/history", json={})),
            (1, lambda: self.send("GET", f"{self._url}/progress")),
            (
                1,
                lambda: self.send(
                    "POST", "/threads", json={"thread_id": self._thread, "if_exists": "do_nothing"}
                ),
            ),
        ]
        weights, does = zip(*acts, strict=True)
        await self._chosen.choices(does, weights)[0]()


def _type(answered: Any) -> str:
    return str(answered.headers.get("content-type", ""))


async def test_everything_at_once(api: Serving) -> None:
    chosen = random.Random(os.environ.get("SEED", "1"))
    threads = [fresh() for _ in range(THREADS)]
    for start in range(0, THREADS, AT_ONCE):
        await asyncio.gather(*(_disturb(api, thread, chosen) for thread in threads[start : start + AT_ONCE]))
    for thread in threads:
        await _at_rest(api, thread)
        body = {"assistant_id": "graph", "input": {"trail": ["z"]}, "if_not_exists": "create"}
        outcome = (await api.http.post(f"/threads/{thread}/runs/wait", json=body)).json()
        assert outcome["trail"][-3:] == ["z", "a", "b"]
    assert await _deadlocks(api.stack.pool) == 0


async def _disturb(api: Serving, thread: str, chosen: random.Random) -> None:
    clients = Clients(api, thread, chosen)

    async def client() -> None:
        for _ in range(REQUESTS):
            await clients.act()

    await api.thread(thread_id=thread)
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    assert clients.refused == []


async def _at_rest(api: Serving, thread: str) -> None:
    async with asyncio.timeout(30):
        while True:
            answered = await api.http.get(f"/threads/{thread}")
            if answered.status_code == 404 or answered.json()["status"] != "busy":
                return
            await asyncio.sleep(0.05)


async def _deadlocks(pool: Pool) -> int:
    """Returns how often PostgreSQL had to end a transaction because two waited for each other."""
    async with pool.connection() as conn:
        cursor = await conn.execute(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        )
        row = await cursor.fetchone()
    assert row is not None
    return int(row["deadlocks"])
