"""Owns the derivation of idempotency keys.

A key is a hash of *where in the conversation* an effect happens, never of what happened around it:
thread, origin turn, path of nodes with `Send` index and visit, effect name. So it is the same for a retry, a
killed worker, a reset, a resume and a repeated request, and differs for another visit, branch, turn or thread (I7).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """One level of the path down to a node.

    Attributes:
        node: the node's name.
        send: index of the `Send` that made the task, or None.
        visit: supersteps of this graph that the origin turn completed before, along the checkpoint lineage;
            a node runs at most once a superstep (per Send index), so this tells its visits apart.
    """

    node: str
    send: int | None
    visit: int


def derive(thread_id: str, origin: str, path: tuple[Place, ...], name: str, occurrence: int = 0) -> str:
    """Returns the key of an effect: 32 hexadecimal digits.

    Args:
        thread_id: the thread.
        origin: the turn that the running turn continues, or itself.
        path: places from the root graph down to the node.
        name: the effect's name.
        occurrence: how often this visit used the name before.
    """
    parts = [thread_id, origin]
    for place in path:
        parts += [place.node, "" if place.send is None else str(place.send), str(place.visit)]
    parts += [name, str(occurrence)]
    return _digest("place", parts)


def derive_business(thread_id: str, business_key: str, name: str) -> str:
    """Returns the key of an effect whose author knows what makes it the same one: 32 hexadecimal digits."""
    return _digest("business", [thread_id, business_key, name])


def derive_compensation(key: str) -> str:
    """Returns the key that an effect's compensation is called with."""
    return _digest("compensation", [key])


def derive_after_compensation(key: str) -> str:
    """Returns the key of an effect that happens anew after it was compensated under `key`.

    Only a turn that was rolled back and is sent again under its old id, or a business key, gets there; to ask the
    provider with the old key would return the receipt of what was given back.
    """
    return _digest("again", [key])


def _digest(kind: str, parts: list[str]) -> str:
    # Length-prefixed, so that no two lists of parts are the same text.
    text = "".join(f"{len(part)}:{part}" for part in [kind, *parts])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
