"""Temporal's sandbox for workflow code, which refuses whatever may change under it."""

from __future__ import annotations

import dataclasses

from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxMatcher, SandboxRestrictions

FORBIDDEN = frozenset(
    {
        "langgraph",
        "langchain_core",
        "langchain",
        "psycopg",
        "fastapi",
        "pydantic",
        "adapter",
        "activities",
        "api",
    }
)


def sandbox() -> SandboxedWorkflowRunner:
    """Returns the sandbox that refuses LangGraph and the database in workflow code, lazy imports included."""
    default = SandboxRestrictions.default
    matcher = SandboxMatcher(children={name: SandboxMatcher.all for name in FORBIDDEN})
    restricted = dataclasses.replace(default, invalid_modules=default.invalid_modules | matcher)
    return SandboxedWorkflowRunner(restrictions=restricted)
