"""Full collections are rare; the young generations are collected as always."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from adapter import garbage


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    threshold, callbacks = gc.get_threshold(), list(gc.callbacks)
    # An API that ran in this process may have set it up.
    gc.callbacks[:] = [one for one in callbacks if "_Seldom" not in repr(one)]
    gc.set_threshold(700, 10, 10)
    yield
    gc.callbacks[:] = callbacks
    gc.set_threshold(*threshold)
    gc.unfreeze()


def test_a_full_collection_is_not_followed_by_another_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    before = gc.get_threshold()
    garbage.collect_seldom()
    gc.collect()
    assert gc.get_threshold()[:2] == before[:2]
    assert gc.get_threshold()[2] > 1000 * before[2]

    gc.collect(1)
    assert gc.get_threshold() != before

    monkeypatch.setattr(garbage.time, "monotonic", lambda: float("inf"))
    gc.collect(0)
    assert gc.get_threshold() == before


def test_it_is_set_up_once() -> None:
    garbage.collect_seldom()
    callbacks = list(gc.callbacks)
    garbage.collect_seldom()
    assert gc.callbacks == callbacks
