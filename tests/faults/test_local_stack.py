"""`turns dev` as its user meets it: start, stop, start again; and what is killed comes back or is gone."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
]

WITHIN = 90.0
GRAPH = """
import pathlib, time
from langgraph.graph import END, START, MessagesState, StateGraph

here = pathlib.Path(__file__).parent

def wait(state):
    with (here / "attempts").open("a") as file:
        file.write("attempt\\n")
    while not (here / "go").exists():
        time.sleep(0.05)
    return {"messages": [("ai", "done")]}

builder = StateGraph(MessagesState)
builder.add_node("wait", wait)
builder.add_edge(START, "wait")
builder.add_edge("wait", END)
graph = builder.compile()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(condition: Callable[[], Any], what: str, within: float = WITHIN) -> Any:
    deadline = time.monotonic() + within
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {within:.0f} s: {what}"
        time.sleep(0.05)
    return found


@dataclass
class Dev:
    """One project directory, and `turns dev` in it."""

    folder: Path
    port: int = field(default_factory=free_port)
    temporal_port: int = field(default_factory=free_port)
    ui_port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def command(self, *flags: str) -> list[str]:
        ports = ("--port", self.port, "--temporal-port", self.temporal_port, "--ui-port", self.ui_port)
        return [sys.executable, "-P", "-m", "deploy.cli", "dev", *(str(part) for part in ports), *flags]

    def environment(self) -> dict[str, str]:
        ours = ("TURNS_", "TEMPORAL_", "DATABASE_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        return kept | {"TURNS_HEARTBEAT_TIMEOUT": "2", "TURNS_SHUTDOWN_GRACE": "2"}

    def start(self, *flags: str) -> None:
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                self.command(*flags), cwd=self.folder, env=self.environment(), stdout=output, stderr=output
            )
        until(lambda: "\nReady after " in self.text or self.process_ended, "the ready block")
        assert not self.process_ended, self.text

    @property
    def output(self) -> Path:
        return self.folder / "output"

    @property
    def text(self) -> str:
        return self.output.read_text("utf-8")

    @property
    def process_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def parts(self) -> dict[str, list[psutil.Process]]:
        """The children by what they are, and below them whatever they started."""
        found: dict[str, list[psutil.Process]] = {}
        for child in psutil.Process(self.pid).children():
            try:
                words = " ".join(child.cmdline())
            except psutil.NoSuchProcess:
                continue
            for name, mark in {
                "api": "deploy.cli api",
                "worker": "deploy.cli worker",
                "temporal": "server start-dev",
                "postgres": "bin/postgres",
            }.items():
                if mark in words:
                    found.setdefault(name, []).append(child)
        return found

    def everything(self) -> list[psutil.Process]:
        return psutil.Process(self.pid).children(recursive=True)

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(timeout=WITHIN)

    def request(self, method: str, path: str, body: Any = None, *, seconds: float = 10) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=seconds) as response:
            return json.loads(response.read())

    def answers(self) -> bool:
        try:
            return self.request("GET", "/ok?check_db=1") is not None
        except OSError:
            return False

    def settle(self) -> None:
        """Waits until two workers, and each API process that there was, said that they are ready since they ended."""

        def ready(name: str, says: str) -> bool:
            text = self.text
            return text.rfind(f"{name} {says} ready") > text.rfind(f"turns warning: {name} ")

        def all_ready() -> bool:
            apis = set(re.findall(r"\b(api\S*) API ready", self.text))
            workers = ("worker-1", "worker-2")
            return all(ready(name, "worker") for name in workers) and all(ready(name, "API") for name in apis)

        # They share a port: that it answers says nothing of the one that was killed.
        until(lambda: all_ready() and self.answers(), f"the whole stack at work; see {self.output}")


def running(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that still live; a zombie waits only for an init process that a container may not have."""
    found: list[psutil.Process] = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@contextlib.contextmanager
def project(folder: Path) -> Generator[Dev]:
    folder.mkdir(exist_ok=True)
    (folder / "graph.py").write_text(GRAPH)
    config = {"dependencies": ["."], "graphs": {"support": "./graph.py:graph"}, "env": {}}
    (folder / "langgraph.json").write_text(json.dumps(config))
    made = Dev(folder)
    try:
        yield made
    finally:
        if not made.process_ended:
            made.end(signal.SIGKILL)


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[Dev]:
    with project(tmp_path / "project") as made:
        yield made


def test_a_turn_in_flight_goes_on_at_the_next_start(dev: Dev) -> None:
    dev.start()
    thread = dev.request("POST", "/threads", {})["thread_id"]
    said = {"messages": [{"role": "user", "content": "hello"}]}
    run = dev.request("POST", f"/threads/{thread}/runs", {"assistant_id": "support", "input": said})["run_id"]
    until((dev.folder / "attempts").exists, "the node's first attempt")
    everything = dev.everything()

    dev.end(signal.SIGKILL)
    until(lambda: not running(everything), "the end of every process below a killed supervisor", 15)
    (dev.folder / "go").touch()
    dev.start()

    def ended() -> str | None:
        status = dev.request("GET", f"/threads/{thread}/runs/{run}")["status"]
        return None if status in ("pending", "running") else status

    assert until(ended, "the turn's end") == "success"
    assert (dev.folder / "attempts").read_text().count("attempt") == 2
    assert dev.end() == 0


def test_ctrl_c_stops_everything_in_order(dev: Dev) -> None:
    dev.start()
    assert f"API       http://127.0.0.1:{dev.port}" in dev.text
    assert f"curl -N http://127.0.0.1:{dev.port}/runs/stream" in dev.text
    everything = dev.everything()
    assert set(dev.parts()) == {"api", "worker", "temporal", "postgres"}

    assert dev.end() == 0
    assert not running(everything)
    assert "was ended by" not in dev.text, "nothing was started again meanwhile"
    assert "database system is shut down" in (dev.folder / ".turns" / "postgres.log").read_text()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dev]:
    with project(tmp_path_factory.mktemp("shared")) as made:
        made.start("--workers", "2", "--api-workers", "2")
        yield made
        assert made.end() == 0


@pytest.mark.parametrize("part", ["worker", "api", "temporal", "postgres"])
def test_a_killed_part_is_started_again(shared: Dev, part: str) -> None:
    shared.settle()  # a part that is starting may end, rightly, when the next one is killed under it
    before = shared.parts()
    victim = before[part][0]
    below = victim.children(recursive=True)
    victim.kill()

    def replaced() -> bool:
        now = shared.parts().get(part, [])
        return len(now) == len(before[part]) and victim not in now

    until(replaced, f"another {part}")
    shared.settle()
    until(lambda: not running(below), f"the end of what the killed {part} had started", 15)
    told = rf"^\d\d:\d\d:\d\d turns warning: {part}\S* was ended by SIGKILL; starting it again in \S+ s$"
    assert re.search(told, shared.text, re.MULTILINE)
    others = {name: pids for name, pids in before.items() if name != part}
    assert {name: pids for name, pids in shared.parts().items() if name != part} == others, shared.text


def test_nobody_is_refused_while_the_api_is_started_again(shared: Dev) -> None:
    shared.settle()
    for process in shared.parts()["api"]:
        process.kill()
    assert shared.request("GET", "/ok", seconds=WITHIN) == {"ok": True, "services": {}}


def test_a_second_stack_on_the_same_data_is_refused(shared: Dev) -> None:
    other = Dev(shared.folder)
    done = subprocess.run(
        other.command(), cwd=other.folder, env=other.environment(), capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"turns: another `turns dev` (pid {shared.pid}) runs on .turns; stop it, or pass another --data-dir\n"
    )


def test_another_stack_runs_beside_it(shared: Dev, dev: Dev) -> None:
    dev.start()
    assert shared.answers() and dev.answers()
    assert dev.end() == 0
    assert shared.answers()


def test_doctor_and_migrate_join_a_running_stack(shared: Dev) -> None:
    ports = shared.command()[5:]
    doctor = subprocess.run(
        [sys.executable, "-P", "-m", "deploy.cli", "doctor", *ports],
        cwd=shared.folder,
        env=shared.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert doctor.returncode == 0, doctor.stdout
    assert doctor.stdout.count("\nok ") + 1 == len(doctor.stdout.splitlines())
    migrate = subprocess.run(
        [sys.executable, "-P", "-m", "deploy.cli", "migrate"],
        cwd=shared.folder,
        env=shared.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (migrate.returncode, migrate.stdout) == (0, "the schema is up to date\n")


def test_a_second_ctrl_c_kills(dev: Dev) -> None:
    dev.start()
    everything = dev.everything()
    worker = dev.parts()["worker"][0]
    worker.suspend()  # will not stop when it is asked to
    assert dev.process is not None
    dev.process.send_signal(signal.SIGINT)
    until(lambda: "stopping; once more kills" in dev.text, "the first signal's line")
    assert dev.end() == 130
    assert not running(everything)


def test_a_terminal_s_hangup_and_a_stop_during_the_start(dev: Dev) -> None:
    with dev.output.open("wb") as output:
        dev.process = subprocess.Popen(
            dev.command(), cwd=dev.folder, env=dev.environment(), stdout=output, stderr=output
        )
    until((dev.folder / ".turns" / "postgres.log").exists, "PostgreSQL's start")
    everything = dev.everything()
    assert dev.end(signal.SIGHUP) == 0
    assert not running(everything)
    assert "Ready" not in dev.text
