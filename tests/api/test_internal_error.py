"""An error nobody expected is a plain 500; its text is in the log only. A client that leaves is no error."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from tests.api.graphs import steps
from tests.api.serving import serving


async def test_text_stays_inside(database_url: str, temporal: str, caplog: pytest.LogCaptureFixture) -> None:
    def factory() -> Any:
        raise RuntimeError("the secret of the house")

    async with serving(database_url, temporal, {"graph": steps("a"), "broken": factory}) as api:
        answered = await api.http.get("/assistants/broken/graph")
        assert (answered.status_code, answered.text) == (500, "Internal Server Error")
        assert answered.headers["content-type"] == "text/plain; charset=utf-8"
        assert "the secret of the house" in caplog.text


async def test_a_request_that_ends_half_way(
    database_url: str, temporal: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(database_url, temporal, {"graph": steps("a")}) as api:
        at = httpx.URL(api.url)
        _, writer = await asyncio.open_connection(at.host, at.port)
        writer.write(b"POST /threads HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
        await writer.drain()
        # Answered by the same event loop, after it has taken up the half request.
        assert (await api.http.get("/ok")).status_code == 200
        writer.close()
        await writer.wait_closed()
        for _ in range(5):
            assert (await api.http.get("/ok")).status_code == 200
    assert [r for r in caplog.records if r.exc_info] == []
