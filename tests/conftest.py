"""The session's servers; every test gets a database of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import servers


@pytest.fixture(scope="session")
def postgres() -> Iterator[servers.Postgres]:
    with servers.postgres() as server:
        yield server


@pytest.fixture(scope="session")
def temporal() -> Iterator[str]:
    with servers.temporal() as address:
        yield address


@pytest.fixture
def database_url(postgres: servers.Postgres) -> str:
    return postgres.clone()
