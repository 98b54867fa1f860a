"""Owns the built-in policy: a list of keys, whose names own what is made under them."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any, Final, cast

from langgraph_sdk import Auth

from adapter.errors import ConfigError

OWNER: Final = "owner"
# The assistants of the project's graphs carry it.
_COMMON: Final = {"created_by": "system"}


class Headers(dict[bytes, bytes]):
    """A request's headers as handlers take them: bytes by bytes, and, asked with text, text in any case."""

    def get(self, key: Any, default: Any = None) -> Any:
        """Returns a header, or `default`."""
        if isinstance(key, str):
            found = super().get(key.lower().encode("latin-1", "replace"))
            return default if found is None else found.decode("latin-1")
        return super().get(key, default)

    def __getitem__(self, key: Any) -> Any:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None


def by_key(text: str) -> Auth:
    """Returns the policy of a list of keys: a name sees what was made under it, and nothing else.

    The assistants of the project's graphs are everybody's. In the store, a name has the namespaces that begin with it.

    Args:
        text: "name:key,name2:key2". A name may have several keys.

    Raises:
        ConfigError: an entry is not understood, or a key has two names; no key is in the message.
    """
    names = _names(text)
    auth = Auth()

    async def who(headers: Headers) -> str:
        scheme, _, bearer = headers.get(b"authorization", b"").partition(b" ")
        given = (headers.get(b"x-api-key", b""), bearer.strip() if scheme.lower() == b"bearer" else b"")
        for key in given:
            name = _name_of(key, names)
            if name is not None:
                return name
        raise Auth.exceptions.HTTPException(headers={"WWW-Authenticate": "Bearer"})

    register = cast("Any", auth)
    register.authenticate(who)
    register.on(_own)
    register.on.assistants(_own_assistants)
    register.on.assistants(actions=["read", "search"])(_own_or_common)
    register.on.store(_own_namespaces)
    return auth


def _names(text: str) -> Mapping[bytes, str]:
    """Returns the name of each key's digest: digests have one length, so that comparing them takes one time."""
    names: dict[bytes, str] = {}
    for number, entry in enumerate(text.split(","), 1):
        name, _, key = (part.strip() for part in entry.partition(":"))
        if not (name and key):
            raise ConfigError(f'TURNS_API_KEYS: entry {number} must be "name:key"')
        if name == "*":  # any label, in a search for namespaces
            raise ConfigError(f'TURNS_API_KEYS: the name of entry {number} cannot be "*"')
        if names.setdefault(_digest(key.encode()), name) != name:
            raise ConfigError(f"TURNS_API_KEYS: entry {number} has the key of another name")
    return names


def _name_of(key: bytes, names: Mapping[bytes, str]) -> str | None:
    digest, found = _digest(key), None
    for known, name in names.items():  # all of them, whichever it is
        if hmac.compare_digest(digest, known):
            found = name
    return found


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


async def _own(ctx: Any, value: dict[str, Any]) -> Any:
    if isinstance(value.get("metadata"), dict):
        value["metadata"] = {**value["metadata"], OWNER: ctx.user.identity}
    return {OWNER: ctx.user.identity}


async def _own_assistants(ctx: Any, value: dict[str, Any]) -> Any:
    if isinstance(value.get("metadata"), dict):  # nobody makes an assistant that is everybody's
        value["metadata"] = {k: v for k, v in value["metadata"].items() if k not in _COMMON}
    return await _own(ctx, value)


async def _own_or_common(ctx: Any, value: dict[str, Any]) -> Any:
    return {"$or": [{OWNER: ctx.user.identity}, _COMMON]}


async def _own_namespaces(ctx: Any, value: dict[str, Any]) -> Any:
    namespace = tuple(value.get("namespace") or ())
    if not namespace and ctx.action in ("search", "list_namespaces"):
        namespace = (ctx.user.identity,)
    value["namespace"] = namespace
    return namespace[:1] == (ctx.user.identity,)
