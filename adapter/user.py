"""Owns who a turn is run for: the user that the API authenticated, as nodes see it.

The user is stored with the turn as JSON, so that a worker in another process has it; it does not go to Temporal.
"""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Mapping
from typing import Any, cast

AUTH_PREFIX = "langgraph_auth_"


class AuthUser:
    """A user, read as LangGraph's `BaseUser`: `user.identity`, `user["identity"]`, `user.get("team")`, `dict(user)`.

    Args:
        fields: JSON; `identity` at least.
    """

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields: dict[str, Any] = {
            "is_authenticated": True,
            "display_name": fields["identity"],
            "permissions": [],
            **{name: value for name, value in fields.items() if value is not None},
        }

    @property
    def identity(self) -> str:
        """The user's id."""
        return str(self._fields["identity"])

    @property
    def display_name(self) -> str:
        """The user's name; the id when no other is known."""
        return str(self._fields["display_name"])

    @property
    def is_authenticated(self) -> bool:
        """Whether the user is known, as the authenticator says."""
        return bool(self._fields["is_authenticated"])

    @property
    def permissions(self) -> list[str]:
        """What the user may do, in the authenticator's own words."""
        return list(cast("list[str]", self._fields["permissions"]))

    def __getitem__(self, name: str) -> Any:
        return self._fields[name]

    def __getattr__(self, name: str) -> Any:
        # Copying and pickling ask for such names before there are any fields.
        if not name.startswith("_") and name in self._fields:
            return self._fields[name]
        raise AttributeError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    def keys(self) -> KeysView[str]:
        """Returns the names of what is known of the user."""
        return self._fields.keys()

    def get(self, name: str, default: Any = None) -> Any:
        """Returns what is known under a name, or `default`."""
        return self._fields.get(name, default)

    # The fields may hold credentials: logs and streams (LangGraph shows a run's config with its checkpoints) have the
    # identity only.

    def __repr__(self) -> str:
        return f"AuthUser({self.identity!r})"

    def _asdict(self) -> dict[str, Any]:
        """Returns what `adapter/wire.py` shows."""
        return {"identity": self.identity}


def configured(user: AuthUser) -> dict[str, Any]:
    """Returns what LangGraph's config promises about the user, for `configurable`."""
    return {
        f"{AUTH_PREFIX}user": user,
        f"{AUTH_PREFIX}user_id": user.identity,
        f"{AUTH_PREFIX}permissions": user.permissions,
        "user_id": user.identity,
    }


def without_user(configurable: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a client's `configurable` without what only the server may say about the user."""
    return {name: value for name, value in configurable.items() if not name.startswith(AUTH_PREFIX)}
