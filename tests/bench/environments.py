"""Owns the environments that baselines run in: one a requirements file, made once, never the project's own."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import version as own_version
from pathlib import Path

from tests.processes import ROOT

SERVED = Path(__file__).parent / "served"
_STAMP = ".installed"
_SHOW = (
    "import importlib.metadata as m, json, sys; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"
)


class NotInstalled(Exception):
    """An environment could not be made; the text is one line that says why."""


def python_of(name: str) -> Path:
    """Returns the interpreter of the environment of `served/<name>.txt`, which is made if it is not there.

    Raises:
        NotInstalled: it cannot be made.
    """
    requirements = SERVED / f"{name}.txt"
    folder = ROOT / ".turns" / "bench" / name
    python = folder / "bin" / "python"
    wanted = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    stamp = folder / _STAMP
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        print(f"making the environment of {name}", file=sys.stderr, flush=True)
        _run(sys.executable, "-m", "venv", str(folder))
        pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes")
        _run(str(python), *pip, "-r", str(requirements))
        stamp.write_text(wanted)
    return python


def versions(python: Path, names: Iterable[str]) -> dict[str, str]:
    """Returns which versions of packages an environment has."""
    if str(python) == sys.executable:
        return {name: own_version(name) for name in names}
    shown = subprocess.run([str(python), "-c", _SHOW, *names], capture_output=True, text=True, check=True)
    return json.loads(shown.stdout)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no output"]
        raise NotInstalled(f"{' '.join(command[1:4])} failed: {lines[-1][:200]}")
