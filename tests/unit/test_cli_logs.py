"""One record is one line."""

from __future__ import annotations

import logging
import re
import sys

from deploy.logs import LineFormatter


def line(message: str, level: int = logging.INFO, *, failed: bool = False) -> str:
    exc_info = sys.exc_info() if failed else None
    record = logging.LogRecord("adapter.engine", level, __file__, 1, message, (), exc_info)
    return LineFormatter("worker").format(record)


def test_time_component_message() -> None:
    assert re.fullmatch(r"\d\d:\d\d:\d\d worker ready", line("ready"))
    assert line("slow", logging.WARNING).endswith(" worker warning: slow")


def test_line_breaks_are_folded() -> None:
    assert line("first\n\n  second\r\nthird").endswith(" worker first / second / third")


def test_an_exception_is_told_with_its_trail_and_its_cause() -> None:
    try:
        try:
            raise KeyError("amount")
        except KeyError as exc:
            raise ValueError("no amount\nin the order") from exc
    except ValueError:
        text = line("node failed", logging.ERROR, failed=True)
    assert "\n" not in text
    assert "worker error: node failed | ValueError: no amount / in the order [" in text
    assert "caused by KeyError: 'amount' [" in text
    assert f"{__file__}:" in text
