"""Bad input ends in one clear line on stderr and exit code 2; each case is a real process."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Every one of them starts processes.
pytestmark = pytest.mark.slow

GRAPH = """
from langgraph.graph import END, START, MessagesState, StateGraph

builder = StateGraph(MessagesState)
builder.add_node("answer", lambda state: {"messages": ["hello"]})
builder.add_edge(START, "answer")
builder.add_edge("answer", END)
graph = builder.compile()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "graph.py").write_text(GRAPH)
    write_config(tmp_path, graphs={"support": "./graph.py:graph"})
    return tmp_path


def write_config(folder: Path, **body: object) -> None:
    (folder / "langgraph.json").write_text(json.dumps({"dependencies": ["."], **body}))


def turns(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    ours = ("TURNS_", "TEMPORAL_", "DATABASE_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return subprocess.run(
        [sys.executable, "-P", "-m", "deploy.cli", *arguments],
        cwd=folder,
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=60,
    )


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """The one line; anything else on either stream fails the test."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("turns: ")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.removeprefix("turns: ").strip()


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "give a command, one of abandoned, api, dev, doctor, effects, migrate, worker"),
        (("frob",), "No such command 'frob'"),
        (("dev", "--prot", "3000"), "No such option '--prot'. (Did you mean"),
        (("dev", "--port"), "'--port' requires an argument"),
        (("dev", "--port", "http"), "port: Input should be a valid integer"),
        (("dev", "--port", "65536"), "port: Input should be less than or equal to 65535"),
        (("dev", "--ui-port", "7233"), "temporal_port and ui_port are both 7233"),
        (("dev", "--workers", "0"), "workers: Input should be greater than or equal to 1"),
        (("dev", "--host", "0.0.0.0"), "host 0.0.0.0 is reachable from other machines"),
        (("api", "--host", "10.0.0.1"), "host 10.0.0.1 is reachable from other machines"),
        (("dev", "extra"), "Got unexpected extra argument (extra)"),
    ],
)
def test_a_wrong_argument(project: Path, arguments: tuple[str, ...], says: str) -> None:
    assert says in refusal(turns(project, *arguments))


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("TURNS_PORT", "http", "port: Input should be a valid integer"),
        ("TURNS_TEMPORAL_PORT", "2024", "port and temporal_port are both 2024"),
        ("TURNS_API_WORKERS", "many", "api_workers: Input should be a valid integer"),
        ("TURNS_HOST", "::", "host :: is reachable from other machines"),
        ("TURNS_CONFIG", "other.json", "other.json: No such file or directory"),
        ("TURNS_ALLOW_PUBLIC", "maybe", "'maybe' is not a valid boolean"),
        ("TEMPORAL_PROFILE", "nowhere", "Temporal's client configuration: Profile 'nowhere' not found"),
    ],
)
def test_a_wrong_variable(project: Path, variable: str, value: str, says: str) -> None:
    assert says in refusal(turns(project, "dev", **{variable: value}))


def test_no_project_file(tmp_path: Path) -> None:
    assert "langgraph.json: No such file or directory" in refusal(turns(tmp_path, "dev"))
    assert not list(tmp_path.iterdir()), "a start in the wrong directory leaves nothing there"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ("[]", "JSON object"),
        ('{"graphs": {"a": "./graph.py:graph"}, "env": "./.env"}', "no such file"),
        ('{"graphs": {"a": "./graph.py:graph"}, "env": 7}', "env must be an object"),
    ],
)
def test_a_broken_project_file(project: Path, text: str, says: str) -> None:
    (project / "langgraph.json").write_text(text)
    assert says in refusal(turns(project, "dev", *free_ports()))


@pytest.mark.slow
def test_a_missing_graph(project: Path) -> None:
    write_config(project, graphs={"a": "./nowhere.py:graph"})
    line = refusal(turns(project, "dev", *free_ports()))
    assert line.startswith('graph "a": ') and line.endswith("nowhere.py does not exist")
    assert not (project / ".turns" / "postgres").exists(), "nothing was started"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "says"),
    [
        ("import nowhere_to_be_found", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("import sys; sys.exit(0)", "ended the process while it was imported"),
    ],
)
def test_a_graph_that_cannot_be_imported(project: Path, module: str, says: str) -> None:
    (project / "graph.py").write_text(module)
    assert says in refusal(turns(project, "dev", *free_ports()))


@pytest.mark.slow
def test_a_module_with_a_name_of_ours(project: Path) -> None:
    (project / "api.py").write_text("")
    assert 'hidden by durable-turns\' own module "api"' in refusal(turns(project, "dev", *free_ports()))


@pytest.mark.parametrize("flag", ["--port", "--temporal-port", "--ui-port"])
def test_a_busy_port(project: Path, busy_port: int, flag: str) -> None:
    flags = dict(zip(*[iter(free_ports())] * 2, strict=True)) | {flag: str(busy_port)}
    line = refusal(turns(project, "dev", *(part for pair in flags.items() for part in pair)))
    assert line == f"port {busy_port} is in use; stop what uses it, or pass another {flag}"


def test_a_data_directory_in_use(project: Path) -> None:
    (project / ".turns").mkdir()
    with (project / ".turns" / "lock").open("w") as held:
        held.write("4711\n")
        held.flush()
        fcntl.flock(held, fcntl.LOCK_EX)
        line = refusal(turns(project, "dev", *free_ports()))
    assert line == "another `turns dev` (pid 4711) runs on .turns; stop it, or pass another --data-dir"


def test_a_data_directory_that_is_a_file(project: Path) -> None:
    (project / "data").write_text("")
    assert "data directory data: " in refusal(turns(project, "dev", "--data-dir", "data", *free_ports()))


@pytest.mark.parametrize("command", ["worker", "api", "migrate"])
def test_no_database(project: Path, command: str) -> None:
    line = refusal(turns(project, command))
    assert line == (
        "no PostgreSQL: DATABASE_URL is not set and none runs under .turns; "
        "start `turns dev`, or set DATABASE_URL"
    )


def test_a_database_that_does_not_answer(project: Path) -> None:
    line = refusal(turns(project, "migrate", DATABASE_URL="postgresql://127.0.0.1:1/turns"))
    assert line.startswith("cannot connect to PostgreSQL: ")
    assert line.endswith("start it, or correct DATABASE_URL")


@pytest.mark.slow
@pytest.mark.parametrize("by", ["variable", "file"])
def test_a_configured_temporal_that_does_not_answer(project: Path, by: str) -> None:
    (project / "temporal.toml").write_text('[profile.default]\naddress = "127.0.0.1:1"\nnamespace = "ours"\n')
    configured = {
        "variable": {"TEMPORAL_ADDRESS": "127.0.0.1:1", "TEMPORAL_NAMESPACE": "ours"},
        "file": {"TEMPORAL_CONFIG_FILE": "temporal.toml"},
    }
    line = refusal(turns(project, "dev", *free_ports(), **configured[by]))
    assert line == "Temporal at 127.0.0.1:1, namespace ours: connection refused; check TEMPORAL_ADDRESS"


@pytest.mark.slow
def test_doctor_names_each_part_and_what_to_do(project: Path, busy_port: int) -> None:
    done = turns(project, "doctor", *free_ports(), TURNS_PORT="1")
    lines = {line.split()[1]: line for line in done.stdout.splitlines()}
    assert done.returncode == 1
    assert list(lines) == ["python", "project", "postgres", "temporal", "port", "temporal-port", "ui-port"]
    assert lines["project"].startswith("ok") and "graphs support" in lines["project"]
    assert lines["postgres"].startswith("problem") and "start `turns dev`" in lines["postgres"]
    assert lines["temporal"].startswith("problem") and "start `turns dev`" in lines["temporal"]
    assert lines["port"].startswith("ok")

    busy = turns(project, "doctor", "--port", str(busy_port))
    assert f"problem  port           port {busy_port} is in use" in busy.stdout


def free_ports() -> tuple[str, ...]:
    """Flags that keep a case apart from whatever runs on the usual ports."""
    with socket.socket() as one, socket.socket() as two, socket.socket() as three:
        sockets = (one, two, three)
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        ports = [str(each.getsockname()[1]) for each in sockets]
    return ("--port", ports[0], "--temporal-port", ports[1], "--ui-port", ports[2])
