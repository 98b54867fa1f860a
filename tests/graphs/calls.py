"""Counts node calls, so that a durable turn can be held against a plain run."""

from __future__ import annotations

CALLS: list[str] = []


def called(name: str) -> None:
    """Notes that a node ran."""
    CALLS.append(name)
