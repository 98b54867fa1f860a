"""FR-11: twenty runs submitted at once are twenty turns, in the order of acceptance, none lost."""

from __future__ import annotations

import asyncio

import pytest

from tests.api.graphs import steps
from tests.api.serving import in_front_of, serving


@pytest.mark.slow
async def test_twenty_at_once(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"graph": steps("a")}) as api:
        async with in_front_of(api.stack) as other:
            thread = await api.thread()
            runs = await asyncio.gather(
                *(
                    (api, other)[number % 2].run(thread, input={"trail": [f"in {number}"]})
                    for number in range(20)
                )
            )
            for run in runs:
                assert (await api.stack.ended(run))["status"] == "success"
            listed = (await api.http.get(f"/threads/{thread}/runs", params={"limit": 30})).json()
            accepted = [run["kwargs"]["input"]["trail"][0] for run in reversed(listed)]
            assert sorted(accepted) == sorted(f"in {number}" for number in range(20))
            trail = (await api.http.get(f"/threads/{thread}/state")).json()["values"]["trail"]
            assert trail == [step for said in accepted for step in (said, "a")]
