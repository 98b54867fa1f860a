"""Owns reading what processes used: CPU seconds and memory of whole trees of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import psutil


def trees(pids: Iterable[int]) -> list[psutil.Process]:
    """Returns the processes and all below them that are alive."""
    found: dict[int, psutil.Process] = {}
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            root = psutil.Process(pid)
            found.update({one.pid: one for one in (root, *root.children(recursive=True))})
    return list(found.values())


def cpu_seconds(pids: Iterable[int]) -> float:
    """Returns what the trees used so far, their ended children included."""
    total = 0.0
    for process in trees(pids):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def resident_mb(pids: Iterable[int]) -> float:
    """Returns the resident memory of the trees; what forked processes share is counted once for each."""
    total = 0
    for process in trees(pids):
        with contextlib.suppress(psutil.NoSuchProcess):
            total += process.memory_info().rss
    return total / 1e6
