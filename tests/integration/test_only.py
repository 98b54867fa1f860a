"""A filter means the same to PostgreSQL and to us, and one that is not understood shows nothing."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from adapter.errors import Forbidden
from adapter.store.only import EVERYTHING, BadFilter, Only

FILTERS: list[dict[str, Any]] = [
    {},
    {"a": "x"},
    {"a": {"$eq": "x"}},
    {"a": 1},
    {"a": True},
    {"a": {"$contains": "x"}},
    {"a": {"$contains": ["x", "y"]}},
    {"a": {"$contains": []}},
    {"a": "x", "b": "y"},
    {"$or": [{"a": "x"}, {"b": {"$contains": 1}}]},
]
ROWS: list[dict[str, Any]] = [
    {},
    *({"a": value} for value in ("x", "X", 1, 1.0, True, None, [], ["x"], ["y", "x"], [["x"]], {"x": 1})),
    {"a": "x", "b": "y"},
    {"b": [True, 1]},
    {"b": [True]},
]


def test_the_same_in_sql(database_url: str) -> None:
    seen: set[bool] = set()
    with psycopg.connect(database_url) as conn:
        for given in FILTERS:
            only = Only.of(given)
            for row in ROWS:
                found = conn.execute(
                    "SELECT %s::jsonb[] IS NULL OR %s @> ANY (%s::jsonb[])",
                    (only.sql(), Jsonb(row), only.sql()),
                ).fetchone()
                assert found == (only.admits(row),), (given, row)
                seen.add(only.admits(row))
    assert seen == {True, False}


@pytest.mark.parametrize(
    "given",
    [
        {"a": None},
        {"a": ["x"]},
        {"a": {"x": 1}},
        {"a": {"$eq": None}},
        {"a": {"$eq": ["x"]}},
        {"a": {"$eq": "x", "$contains": "x"}},
        {"a": {"$in": ["x"]}},
        {"a": {"$contains": [["x"]]}},
        {"$and": [{"a": "x"}]},
        {"$or": []},
        {"$or": ["a"]},
        {"$or": [{"a": "x"}], "b": "y"},
    ],
)
def test_not_understood(given: dict[str, Any]) -> None:
    with pytest.raises(BadFilter):
        Only.of(given)


def test_stamped() -> None:
    only = Only.of({"owner": "alice", "members": {"$contains": "alice"}})
    assert only.stamped({"x": 1}) == {"x": 1, "owner": "alice", "members": ["alice"]}
    assert only.stamped({"owner": "bob"}) == {"owner": "alice", "members": ["alice"]}
    whole = {"owner": "alice", "members": ["bob", "alice"]}
    assert only.stamped(whole) == whole and EVERYTHING.stamped({"x": 1}) == {"x": 1}
    with pytest.raises(Forbidden):
        only.stamped({"members": ["bob"]})
