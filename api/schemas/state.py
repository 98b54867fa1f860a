"""What bodies of the state and history routes may hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic import Field, field_validator

from api.bodies import Body
from api.schemas.threads import Limit


class Checkpoint(Body):
    """A checkpoint's address. Without an id it is the latest one."""

    checkpoint_id: str | None = None
    checkpoint_ns: str = ""

    @classmethod
    def given(cls, body: Mapping[str, Any]) -> dict[str, Any]:
        """Takes NUL between the segments of a namespace for `|`: one client joins them so."""
        given = super().given(body)
        if isinstance(given.get("checkpoint_ns"), str):
            given["checkpoint_ns"] = given["checkpoint_ns"].replace("\x00", "|")
        return given


class _Addressed(Body):
    """A body that may name a checkpoint."""

    checkpoint: Checkpoint | None = None
    checkpoint_id: str | None = None

    @classmethod
    def given(cls, body: Mapping[str, Any]) -> dict[str, Any]:
        """Cleans the checkpoint's address, too."""
        given = super().given(body)
        if isinstance(given.get("checkpoint"), Mapping):
            given["checkpoint"] = Checkpoint.given(given["checkpoint"])
        return given


class StateAt(_Addressed):
    """POST …/state/checkpoint."""

    subgraphs: bool = False


class StateUpdate(_Addressed):
    """POST …/state."""

    values: Any = None
    as_node: str | None = None


class History(_Addressed):
    """POST …/history."""

    limit: Limit = 10
    before: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])

    @field_validator("before", mode="before", json_schema_input_type=str | dict[str, Any])
    @classmethod
    def _before(cls, before: Any) -> Any:
        """Accepts a checkpoint's id, its address, or LangGraph's config with one."""
        if not isinstance(before, Mapping):
            return before
        address = cast("Mapping[str, Any]", before)
        if isinstance(address.get("configurable"), Mapping):
            address = cast("Mapping[str, Any]", address["configurable"])
        return address.get("checkpoint_id")
