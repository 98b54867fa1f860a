"""Full collections are rare; the young generations are collected as always."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterator

import pytest

from adapter import garbage


class Ring:
    """Garbage that only a collection finds."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    threshold = gc.get_threshold()
    # An API that runs in this process may have set it up.
    monkeypatch.setattr(garbage, "_found", [])
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*threshold)
    gc.unfreeze()


def old_ring() -> weakref.ref[Ring]:
    """Returns a ring that has outlived the young generations, and is garbage."""
    ring = Ring()
    gc.collect(0)
    gc.collect(1)
    return weakref.ref(ring)


def come_due() -> None:
    for _ in range(20):
        gc.collect(1)


def test_a_full_collection_comes_when_it_is_due_and_not_at_once_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(garbage, "_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(garbage, "_SHARE", 1e9)
    callbacks = list(gc.callbacks)
    gc.collect()  # none is due
    with garbage.collecting_seldom():
        assert gc.get_threshold()[:2] == (700, 10)
        assert gc.callbacks == callbacks
        ring = old_ring()
        come_due()
        deadline = time.monotonic() + 10
        while ring() is not None:
            assert time.monotonic() < deadline, "it does not come"
            time.sleep(0.001)

        ring = old_ring()
        come_due()
        time.sleep(0.05)
        assert ring() is not None
    assert gc.get_threshold() == (700, 10, 10)


def test_python_does_not_do_it_by_itself() -> None:
    with garbage.collecting_seldom():
        ring = old_ring()
        come_due()
        held = [Ring() for _ in range(100_000)]
        assert ring() is not None
        assert len(held) == 100_000


def test_two_in_a_process_leave_the_thresholds_as_they_were() -> None:
    with garbage.collecting_seldom():
        with garbage.collecting_seldom():
            pass
        assert gc.get_threshold()[2] > 10_000
    assert gc.get_threshold() == (700, 10, 10)
