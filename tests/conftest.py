"""The session's servers; every test gets a database of its own."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from tests import servers


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shows a failure at the second try if need be.

    CPython before 3.11.9 counts the depth of what it parses in one place for all threads (gh-106905). A traceback is
    parsed to be shown, here and where a worker logs one: at the same time, that is a SystemError which would end the
    session and hide the failure.
    """
    try:
        return (yield)
    except SystemError:
        return pytest.TestReport.from_item_and_call(item, call)


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
