"""`turns abandoned` and `turns effects` read the database, with nothing else running; each case is a real process."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.unit.test_cli import refusal, turns

pytestmark = pytest.mark.slow

KEY = "5" * 32


@pytest.fixture
def thread(database_url: str) -> str:
    """A thread whose last turn failed after one effect and in the middle of another."""
    thread, turn = str(uuid.uuid4()), str(uuid.uuid4())
    with psycopg.connect(database_url) as conn:
        conn.execute("INSERT INTO turns.thread (thread_id, status) VALUES (%s, 'error')", (thread,))
        conn.execute(
            "INSERT INTO turns.turn (turn_id, thread_id, seq, graph_id, assistant_id, status, request, "
            "request_hash, origin, error, updated_at) VALUES (%(turn)s, %(thread)s, 1, 'graph', "
            "gen_random_uuid(), 'error', '{}', '', %(turn)s, %(error)s, '2026-01-02T03:04:05Z')",
            {"turn": turn, "thread": thread, "error": json.dumps({"error": "Lost", "message": "secret"})},
        )
        for name, key, state, mode in (
            ("charge", KEY, "finished", "keyed"),
            ("mail", "m", "started", "once"),
        ):
            conn.execute(
                "INSERT INTO turns.effect (key, thread_id, turn_id, name, node, mode, state, started_at, "
                "updated_at) VALUES (%s, %s, %s, %s, 'pay', %s, %s, clock_timestamp(), '2026-01-02T03:04:04Z')",
                (key, thread, turn, name, mode, state),
            )
    return thread


def _told(folder: Path, database_url: str, *arguments: str) -> str:
    done = turns(folder, *arguments, DATABASE_URL=database_url)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def test_abandoned(tmp_path: Path, database_url: str, thread: str) -> None:
    head, line, *effects = _told(tmp_path, database_url, "abandoned").splitlines()
    (listed,) = json.loads(_told(tmp_path, database_url, "abandoned", "--json"))

    assert head.split() == ["THREAD", "RUN", "ENDED", "(UTC)", "STATUS", "ERROR"]
    assert line.split() == [thread, listed["run_id"], "2026-01-02", "03:04:05", "error", "Lost"]
    assert [one.strip() for one in effects] == [
        f"charge in pay: finished, attempts 1, key {KEY}",
        "mail in pay: started, attempts 1, key m",
    ]
    assert listed["thread_id"] == thread
    assert [(effect["name"], effect["state"]) for effect in listed["effects"]] == [
        ("charge", "finished"),
        ("mail", "started"),
    ]


def test_effects(tmp_path: Path, database_url: str, thread: str) -> None:
    def names(*arguments: str) -> list[Any]:
        found = json.loads(_told(tmp_path, database_url, "effects", "--json", *arguments))
        return [(effect["name"], effect["unsettled"]) for effect in found]

    table = _told(tmp_path, database_url, "effects").splitlines()
    assert len(table) == 3
    assert table[1].startswith(f"{thread}  mail    pay   started ")
    assert table[1].endswith(
        "m                                 its turn ended and nobody recorded the outcome"
    )
    assert table[2].endswith(KEY)
    assert names() == names("--thread", thread) == [("mail", "unknown"), ("charge", None)]
    assert names("--limit", "1") == names("--unsettled") == [("mail", "unknown")]


def test_nothing(tmp_path: Path, database_url: str) -> None:
    assert _told(tmp_path, database_url, "abandoned") == "no abandoned work\n"
    assert _told(tmp_path, database_url, "abandoned", "--json") == "[]\n"
    assert _told(tmp_path, database_url, "effects") == "no effects\n"
    assert _told(tmp_path, database_url, "effects", "--unsettled") == "no unsettled effects\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("effects", "--thread", "7"), "Invalid value for '--thread': '7' is not a valid UUID."),
        (("effects", "--thread", "00000000-0000-0000-0000-000000000007"), "there is no thread 00000000-"),
        (("effects", "--limit", "0"), "Invalid value for '--limit': 0 is not in the range"),
        (("abandoned", "--limit", "x"), "Invalid value for '--limit': 'x' is not a valid integer range."),
        (("abandoned", "--jsn"), "No such option '--jsn'."),
        (("abandoned", "now"), "Got unexpected extra argument (now)"),
    ],
)
def test_a_wrong_argument(tmp_path: Path, database_url: str, arguments: tuple[str, ...], says: str) -> None:
    assert says in refusal(turns(tmp_path, *arguments, DATABASE_URL=database_url))


@pytest.mark.parametrize("command", ["abandoned", "effects"])
def test_no_database(tmp_path: Path, command: str) -> None:
    assert refusal(turns(tmp_path, command)).startswith("no PostgreSQL: DATABASE_URL is not set")
    line = refusal(turns(tmp_path, command, DATABASE_URL="postgresql://127.0.0.1:1/turns"))
    assert line.startswith("cannot connect to PostgreSQL: ")
