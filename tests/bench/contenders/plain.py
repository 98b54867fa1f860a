"""Owns the handlers written by hand: one `uvicorn`, which runs the graph in its own processes."""

from __future__ import annotations

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

from tests.bench.contenders.base import HttpContender, Setup


class Plain(HttpContender):
    """LangGraph in a FastAPI handler, with LangGraph's saver, durability "sync"."""

    name = "plain"
    packages = ("langgraph", "langgraph-checkpoint-postgres", "fastapi", "uvicorn", "psycopg")

    async def start(self, setup: Setup) -> None:
        """See the base class."""
        database_url = self.servers.empty_database()
        async with AsyncPostgresSaver.from_conn_string(database_url) as saver:
            await saver.setup()
        log = self.run(
            "api",
            ("-m", "uvicorn", "plain_app:app", "--port", str(self.port), "--workers", str(setup.workers),
             "--no-access-log", "--log-level", "warning"),
            {"DATABASE_URL": database_url},
        )  # fmt: skip
        await self.answers("/openapi.json", log)
