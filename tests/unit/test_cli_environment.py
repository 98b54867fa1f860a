"""Where settings come from, and how they reach the processes of the local stack."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adapter.errors import ConfigError
from adapter.settings import load
from deploy.environment import exported, project_variables, settings_for


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "TURNS_PORT", "TURNS_CONFIG", "TURNS_DATA_DIR", "GREETING"):
        monkeypatch.delenv(name, raising=False)


def config(folder: Path, env: object) -> Path:
    path = folder / "langgraph.json"
    path.write_text(json.dumps({"graphs": {}, "env": env}))
    return path


def test_variables_of_an_object_and_of_a_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("# keys\nGREETING='good day'\nexport NAME=ada\nUNSET\n")
    assert project_variables(config(tmp_path, {"GREETING": "hello"})) == {"GREETING": "hello"}
    assert project_variables(config(tmp_path, "./.env")) == {"GREETING": "good day", "NAME": "ada"}
    assert project_variables(config(tmp_path, "")) == {}


def test_flags_win_over_the_environment_and_that_over_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = config(tmp_path, {"TURNS_PORT": "3001", "TURNS_UI_PORT": "3002", "TURNS_WORKERS": "3"})
    for name in ("TURNS_UI_PORT", "TURNS_WORKERS"):
        monkeypatch.setenv(name, "")  # so that the test's end removes what the project sets
        monkeypatch.delenv(name)
    monkeypatch.setenv("TURNS_PORT", "4001")
    settings = settings_for({"config": str(path), "ui_port": "5002", "host": None})
    assert (settings.port, settings.ui_port, settings.workers) == (4001, 5002, 3)


def test_a_process_elsewhere_loads_the_same_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load(config="some/langgraph.json", port=3000, database_url="postgresql:///x")
    for name, value in exported(settings).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir("/")
    there = load()
    assert there.config == tmp_path / "some/langgraph.json"
    assert there.data_dir == tmp_path / ".turns"
    assert (there.port, there.database_url) == (3000, "postgresql:///x")


def test_a_project_file_is_optional_where_it_is_not_needed(tmp_path: Path) -> None:
    nowhere = {"config": str(tmp_path / "langgraph.json")}
    assert settings_for(nowhere, project_needed=False).config == tmp_path / "langgraph.json"
    with pytest.raises(ConfigError, match="No such file"):
        settings_for(nowhere)
