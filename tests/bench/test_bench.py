"""The bench comes to tables and JSON: one case, ours and plain, two rounds. What it measures is not looked at."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests import servers
from tests.bench.__main__ import QUICK, measure, parse, report
from tests.bench.bench import Bench, found, interpreters
from tests.bench.machine import machine

pytestmark = pytest.mark.slow


async def test_tables_and_json(
    postgres: servers.Postgres, temporal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pythons, missing = interpreters(("ours", "plain"), own=True)
    bench = Bench(found(postgres, temporal, tmp_path), pythons, rounds=2)
    everything = await measure(bench, QUICK)
    written = orjson.loads(report(bench, everything, missing, machine(bench.servers)))
    printed = capsys.readouterr().out

    assert "| effects_1 | turn, ms |" in printed
    assert "ours / plain" in printed
    assert "## targets" in printed
    assert "## conditions" in printed
    assert written.keys() == {"machine", "versions", "not_installed", "rounds", "scenarios", "targets"}
    assert written["versions"].keys() == {"ours", "plain"}
    [turns] = written["scenarios"]
    assert turns["scenario"] == "turns"
    assert turns["failures"] == []
    values = {(one["metric"], one["contender"]): one for one in turns["values"]}
    assert values.keys() == {
        ("turn, ms", "ours"),
        ("turn, ms", "plain"),
        ("turn, ms", "ours, no HTTP"),
        ("history, bytes", "ours"),
        ("history, bytes", "ours, no HTTP"),
    }
    assert all(len(one["rounds"]) == 2 for one in turns["values"])
    assert {(one["of"], one["to"]) for one in turns["ratios"]} == {("ours", "plain")}
    assert [one["verdict"] for one in written["targets"]] == ["not measured"]


@pytest.mark.parametrize(
    "arguments",
    [["nope"], ["--rounds", "0"], ["--rounds", "x"], ["--contenders", "nobody"], ["--out", "/proc/no/file"]],
)
def test_bad_arguments(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(arguments)
    assert ended.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
