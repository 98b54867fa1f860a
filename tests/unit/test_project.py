"""`langgraph.json` as the LangGraph CLI knows it, and a clear refusal of what cannot work."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from adapter.errors import ConfigError, NotFound
from adapter.graphs import load_project

MODULE = """
from contextlib import asynccontextmanager
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

class State(TypedDict, total=False):
    x: int

def build(answer=1):
    builder = StateGraph(State)
    builder.add_node("node", lambda state: {"x": answer})
    builder.add_edge(START, "node")
    return builder

builder = build()
compiled = build().compile()

def factory():
    return build(2)

def factory_with_config(config):
    return build(config["configurable"]["answer"]).compile()

async def async_factory(config):
    return build(3).compile()

@asynccontextmanager
async def entered(config):
    yield build(4).compile()

number = 5

def broken():
    return 6
"""


def project(folder: Path, graph: str = "./graphs.py:compiled", **more: Any) -> Path:
    (folder / "graphs.py").write_text(textwrap.dedent(MODULE))
    path = folder / "langgraph.json"
    path.write_text(json.dumps({"dependencies": ["."], "graphs": {"agent": graph}, **more}))
    return path


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("builder", 1),
        ("compiled", 1),
        ("factory", 2),
        ("factory_with_config", 7),
        ("async_factory", 3),
        ("entered", 4),
    ],
)
async def test_kinds_of_graphs(tmp_path: Path, name: str, expected: int) -> None:
    loaded = load_project(project(tmp_path, f"./graphs.py:{name}"))
    async with loaded.plain("agent", {"configurable": {"answer": 7}}) as graph:
        assert (await graph.ainvoke({}))["x"] == expected


def test_relative_imports_inside_a_package(tmp_path: Path) -> None:
    package = tmp_path / "my_agent"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "graphs.py").write_text(MODULE)
    (package / "main.py").write_text("from .graphs import compiled as graph\n")
    path = tmp_path / "langgraph.json"
    path.write_text(json.dumps({"dependencies": ["."], "graphs": {"agent": "./my_agent/main.py:graph"}}))

    assert load_project(path).graph_ids == ["agent"]


def test_env_as_an_object_and_as_a_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\nB='two words'\n")

    assert load_project(project(tmp_path, env={"A": 1})).env == {"A": "1"}
    assert load_project(project(tmp_path, env=".env")).env == {"A": "1", "B": "two words"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"graphs": {}}, '"graphs" must name at least one graph'),
        ({"graphs": {"agent": "./graphs.py"}}, 'must be "file.py:name"'),
        ({"graphs": {"agent": "./missing.py:graph"}}, "missing.py does not exist"),
        ({"graphs": {"agent": "./graphs.py:missing"}}, 'has no "missing"'),
        ({"graphs": {"agent": "./graphs.py:number"}}, "is a int"),
        ({"dependencies": ["./missing"]}, "is not a folder"),
        ({"dependencies": "."}, '"dependencies" must be a list'),
        ({"env": "missing.env"}, "which does not exist"),
    ],
)
def test_refused_with_what_is_wrong(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = project(tmp_path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))

    with pytest.raises(ConfigError, match=message):
        load_project(path)


def test_a_missing_and_a_broken_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        load_project(tmp_path / "langgraph.json")
    (tmp_path / "langgraph.json").write_text("{")
    with pytest.raises(ConfigError, match="is not JSON"):
        load_project(tmp_path / "langgraph.json")


@pytest.mark.parametrize("name", ["adapter.py", "api/__init__.py"])
def test_a_module_that_ours_would_hide(tmp_path: Path, name: str) -> None:
    path = project(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()

    with pytest.raises(ConfigError, match="would be hidden by durable-turns"):
        load_project(path)


async def test_a_factory_that_returns_something_else(tmp_path: Path) -> None:
    loaded = load_project(project(tmp_path, "./graphs.py:broken"))
    with pytest.raises(ConfigError, match="returned a int, not a graph"):
        async with loaded.plain("agent"):
            pass


async def test_an_unknown_graph(tmp_path: Path) -> None:
    loaded = load_project(project(tmp_path))
    with pytest.raises(NotFound, match=r"Graph 'other' not found. Expected one of: \['agent'\]"):
        async with loaded.plain("other"):
            pass
