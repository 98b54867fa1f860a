"""What this project keeps in checkpoints and threads for itself is not shown."""

from __future__ import annotations

from typing import Any

from tests.api.graphs import nested
from tests.api.serving import serving


async def test_hidden_everywhere(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"graph": nested()}) as api:
        thread = await api.thread()
        shown = b""
        for answer in (None, "yes"):
            begins: dict[str, Any] = {"command": {"resume": answer}} if answer else {"input": {"trail": []}}
            await api.wait(thread, **begins)
            for path in ("", "/state?subgraphs=true", "/history", "/runs"):
                shown += (await api.http.get(f"/threads/{thread}{path}")).content
            shown += (await api.http.post("/threads/search", json={})).content
        assert b'"source":"loop"' in shown and b"turns_" not in shown
