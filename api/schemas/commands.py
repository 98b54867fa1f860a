"""What a command may hold, of a run and of an edit."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class Target(BaseModel):
    """A node to go to, with an input of its own."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    node: str
    input: Any = None


class Command(BaseModel):
    """What a client tells a thread that waits."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    resume: Any = None
    update: dict[str, Any] | list[tuple[str, Any]] | None = None
    goto: str | Target | list[str | Target] | None = None
