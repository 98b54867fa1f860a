"""The watchdog warns while a node keeps the event loop, and does nothing while there is nothing to watch."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Generator

import pytest

from activities.watchdog import PARTS, Watchdog


class Heard(logging.Handler):
    """Collects the watchdog's records; `warned` is set by the first one."""

    def __init__(self) -> None:
        super().__init__()
        self.warned = threading.Event()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
        self.warned.set()


@pytest.fixture
def heard() -> Generator[Heard]:
    handler = Heard()
    logger = logging.getLogger("turns.activity")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


async def test_it_warns_while_the_loop_is_kept(heard: Heard) -> None:
    watchdog = Watchdog()
    with watchdog.running(), watchdog.attempt(0.4):
        assert heard.warned.wait(20)
        while "runs again" not in heard.texts[-1]:
            await asyncio.sleep(0.01)

    kept, _ = heard.texts
    assert f"{__file__}:" in kept and "in test_it_warns_while_the_loop_is_kept;" in kept


@pytest.mark.slow
async def test_a_loop_that_is_kept_for_less_is_left_alone(heard: Heard) -> None:
    watchdog = Watchdog()
    with watchdog.running(), watchdog.attempt(4):
        await asyncio.sleep(0.1)
        time.sleep(1.5)  # noqa: ASYNC251 - longer than two eighths, shorter than half of the timeout
        await asyncio.sleep(0.1)

    assert not heard.texts


class Counting(Watchdog):
    """Counts its looks."""

    looks = 0

    def _look(self, timeout: float) -> None:
        self.looks += 1
        super()._look(timeout)


async def test_it_looks_only_while_an_attempt_runs() -> None:
    watchdog = Counting()
    with watchdog.running():
        await asyncio.sleep(0.2)
        assert watchdog.looks == 0

        with watchdog.attempt(3600):
            while not watchdog.looks:
                await asyncio.sleep(0.01)
            with watchdog.attempt(
                0.1 * PARTS
            ):  # a shorter one does not wait for the next look of the longer one
                while watchdog.looks < 3:
                    await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)  # the look that was due
        before = watchdog.looks
        for _ in range(20):
            with watchdog.attempt(3600):
                await asyncio.sleep(0.005)
        assert watchdog.looks <= before + 1
