"""An error nobody expected is a plain 500; its text is in the log only."""

from __future__ import annotations

from typing import Any

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
