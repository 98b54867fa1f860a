"""Authentication that is set up wrongly is refused before anything starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adapter.errors import ConfigError
from adapter.graphs import Project, load_project
from adapter.settings import Settings
from api.access import check_rules
from api.app import build_app
from api.auth import policy_of
from api.keys import by_key
from deploy.environment import asks_who_calls
from deploy.preflight import refuse_public

GRAPH = """
from langgraph.graph import START, StateGraph
graph = StateGraph(dict)
graph.add_node("a", lambda state: state)
graph.add_edge(START, "a")
"""
AUTH = """
from langgraph_sdk import Auth
auth = Auth()
@auth.authenticate
async def who(authorization):
    return authorization
none = 3
"""


def project(folder: Path, auth: Any) -> Path:
    (folder / "graph_for_auth.py").write_text(GRAPH)
    (folder / "auth.py").write_text(AUTH)
    (folder / "broken.py").write_text("raise RuntimeError('no')")
    file = folder / "langgraph.json"
    file.write_text(json.dumps({"graphs": {"graph": "./graph_for_auth.py:graph"}, "auth": auth}))
    return file


@pytest.mark.parametrize(
    ("auth", "why"),
    [
        ("./auth.py:auth", 'must be an object with a "path"'),
        ({"path": 3}, 'must have a "path"'),
        ({"path": "./auth.py"}, "must be"),
        ({"path": "./absent.py:auth"}, "does not exist"),
        ({"path": "./auth.py:absent"}, 'has no "absent"'),
        ({"path": "./auth.py:none"}, "is a int; export a langgraph_sdk.Auth"),
        ({"path": "./broken.py:auth"}, "importing ./broken.py failed: RuntimeError: no"),
    ],
)
def test_refused(tmp_path: Path, auth: Any, why: str) -> None:
    with pytest.raises(ConfigError) as refused:
        policy_of(Settings(), load_project(project(tmp_path, auth)))
    assert why in str(refused.value)


def test_accepted(tmp_path: Path) -> None:
    loaded = load_project(project(tmp_path, {"path": "./auth.py:auth", "disable_studio_auth": True}))
    assert policy_of(Settings(), loaded) is not None
    # A worker does not import it.
    load_project(project(tmp_path, {"path": "./broken.py:auth"}))
    with pytest.raises(ConfigError, match="only one can say who calls"):
        policy_of(Settings(api_keys="a:b"), loaded)
    assert policy_of(Settings(), load_project(project(tmp_path, None))) is None


@pytest.mark.parametrize("text", ["secret", "a:secret,", "a:", ":secret", "a:secret,b:secret", "*:secret"])
def test_keys(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        by_key(text)
    assert "secret" not in str(refused.value) and "secret" not in repr(Settings(api_keys=text))


def test_public_only_with_authentication(tmp_path: Path) -> None:
    for auth, keys, asks in (
        (None, "", False),
        ({"disable_studio_auth": True}, "", False),
        (None, "a:b", True),
        ({"path": "./auth.py:auth"}, "", True),
    ):
        file = project(tmp_path, auth)
        assert asks_who_calls(Settings(config=file, api_keys=keys)) is asks
        # The same answer as that of the process that serves.
        assert (policy_of(Settings(api_keys=keys), load_project(file)) is not None) is asks
    refuse_public("0.0.0.0", allowed=False, authenticated=True)
    refuse_public("0.0.0.0", allowed=True, authenticated=False)
    refuse_public("::1", allowed=False, authenticated=False)
    with pytest.raises(ConfigError, match="no authentication is configured"):
        refuse_public("0.0.0.0", allowed=False, authenticated=False)


def test_no_route_without_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    from api import access
    from api.routers import state

    rules = dict(access.RULES)
    del rules["GET /threads/{thread_id}/state"]
    monkeypatch.setattr(access, "RULES", rules)
    with pytest.raises(RuntimeError, match="has no rule in"):
        build_app(Settings(), Project(Path("langgraph.json"), {}, {}))
    rules["GET /threads/{thread_id}/state"] = access.Rule("threads", "read", body=True)
    with pytest.raises(RuntimeError, match="does not read it with BodyOf"):
        check_rules([state.router])
