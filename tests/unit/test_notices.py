"""A cancel notice that overtakes the attempt it is for still makes that attempt beat at once."""

from __future__ import annotations

import pytest

from activities import heartbeat
from activities.heartbeat import Attempts


def test_it_reaches_who_runs_and_who_begins_soon() -> None:
    attempts = Attempts()
    running, other = attempts.begins("turn"), attempts.begins("another")

    attempts.notice("turn")

    assert running.is_set() and not other.is_set()
    assert attempts.begins("turn").is_set() and not attempts.begins("another").is_set()


def test_it_is_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = Attempts()
    attempts.notice("turn")
    monkeypatch.setattr(heartbeat, "_KEPT_SECONDS", -1.0)

    assert not attempts.begins("turn").is_set()
    assert attempts.noticed == {}


def test_attempts_that_ended_are_forgotten() -> None:
    attempts = Attempts()
    first, second = attempts.begins("turn"), attempts.begins("turn")
    attempts.ends("turn", first)
    assert attempts.count == 1
    attempts.ends("turn", second)
    assert attempts.by_turn == {}
