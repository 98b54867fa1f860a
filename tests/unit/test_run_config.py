"""What an assistant is configured with says nothing about who runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adapter.graphs import Project
from api.run_config import assistant_config, with_assistant

CLAIM = {"langgraph_auth_user": {"identity": "root"}, "langgraph_auth_user_id": "root"}


async def test_no_claims_of_an_assistant() -> None:
    assistant: dict[str, Any] = {
        "graph_id": "graph",
        "config": {"configurable": {**CLAIM, "a": 1}},
        "context": {**CLAIM, "b": 2},
    }
    assert assistant_config(assistant).get("configurable") == {"a": 1, "b": 2}
    made = await with_assistant(Project(Path("langgraph.json"), {}, {}), assistant, {})
    assert made["config"]["configurable"] == {"a": 1, "b": 2}
