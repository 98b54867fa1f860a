"""Each fault point that is named is reached somewhere; one process of all acts on it, at the hit it was armed for."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from adapter import faultpoints
from tests.processes import ROOT, Faults

POINTS = {name: value for name, value in vars(faultpoints).items() if name.isupper() and name[0] != "_"}
CALL = re.compile(r"faultpoints\.reached\((.*?)\)$", re.MULTILINE)


def _calls(package: str) -> list[str]:
    sources = (path.read_text() for path in (ROOT / package).rglob("*.py"))
    return [name for source in sources for call in CALL.findall(source) for name in _names(call)]


def _names(call: str) -> list[str]:
    return re.findall(r"faultpoints\.(\w+)", call)


def test_every_point_is_reached_somewhere_and_in_one_place_only() -> None:
    called = [name for package in ("adapter", "activities", "api") for name in _calls(package)]
    assert sorted(called) == sorted(POINTS)
    assert len(set(POINTS.values())) == len(POINTS)


REACHES = """
import sys
from adapter import faultpoints
for line in sys.stdin:
    faultpoints.reached(faultpoints.BEFORE_EFFECT)
    print("passed", flush=True)
"""


class Reaching:
    """A process that reaches a point whenever it is told to."""

    def __init__(self, directory: Path | None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", REACHES],
            cwd=ROOT,
            env={"TURNS_FAULTS": str(directory)} if directory else {},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def passes(self) -> bool:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.process.stdout.readline() == "passed\n"

    def end(self) -> int:
        self.process.communicate()
        return self.process.returncode


@pytest.mark.parametrize(("action", "number"), [("kill", signal.SIGKILL), ("terminate", signal.SIGTERM)])
def test_one_process_acts_at_the_hit(tmp_path: Path, action: str, number: signal.Signals) -> None:
    faults = Faults(tmp_path)
    first, second = Reaching(tmp_path), Reaching(tmp_path)
    assert first.passes()  # nothing is armed: not counted
    faults.arm(faultpoints.BEFORE_EFFECT, action, 3)
    assert first.passes()
    assert second.passes()
    assert not first.passes()
    assert second.passes()
    assert faults.hits(faultpoints.BEFORE_EFFECT) == 3
    assert (tmp_path / "effect.before.taken").read_text() == str(first.process.pid)
    assert (first.end(), second.end()) == (-number, 0)


def test_nothing_acts_without_a_directory(tmp_path: Path) -> None:
    Faults(tmp_path).arm(faultpoints.BEFORE_EFFECT)
    process = Reaching(None)
    assert process.passes()
    assert process.end() == 0
