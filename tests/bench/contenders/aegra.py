"""Owns Aegra's server, which runs graphs in the process that answers requests."""

from __future__ import annotations

from collections.abc import Mapping

import psycopg

from tests.bench.contenders.base import HttpContender, Setup
from tests.bench.environments import SERVED

# Its migrations ask for this extension, which the embedded PostgreSQL does not have; what they use of it is also
# PostgreSQL's own by now. The row makes CREATE EXTENSION IF NOT EXISTS find it.
_UUID_OSSP = """
CREATE FUNCTION uuid_generate_v4() RETURNS uuid LANGUAGE sql AS 'SELECT gen_random_uuid()';
INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
SELECT 16000, 'uuid-ossp', extowner, extnamespace, true, '1.1' FROM pg_extension WHERE extname = 'plpgsql'
"""


class Aegra(HttpContender):
    """`aegra-api`, with as many connections as others have, and one for each request that waits, which it holds."""

    name = "aegra"
    packages = ("aegra-api", "langgraph", "langgraph-checkpoint-postgres", "fastapi", "uvicorn", "psycopg")

    async def start(self, setup: Setup) -> None:
        """See the base class."""
        database_url = self.servers.empty_database()
        with psycopg.connect(database_url, autocommit=True) as conn:
            conn.execute(_UUID_OSSP)
        environment = {
            "DATABASE_URL": database_url,
            "AEGRA_CONFIG": str(SERVED / "langgraph.json"),
            "LOG_LEVEL": "WARNING",
            "LANGGRAPH_MAX_POOL_SIZE": "10",
            "SQLALCHEMY_POOL_SIZE": "105",
        }
        if setup.workers > 1:  # processes that all migrate at once end one another
            await self._serve(environment, 1)
            await self.stop()
        await self._serve(environment, setup.workers)

    async def _serve(self, environment: Mapping[str, str], workers: int) -> None:
        log = self.run(
            "api",
            ("-m", "uvicorn", "aegra_api.main:app", "--port", str(self.port), "--workers", str(workers),
             "--no-access-log", "--log-level", "warning"),
            environment,
        )  # fmt: skip
        await self.answers("/health", log)
