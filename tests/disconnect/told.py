"""Owns what only ours can be asked: the runs of a thread, and the journal of their effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx

from tests.disconnect.rounds import Round
from tests.disconnect.served import Served


def thread_status(served: Served, thread: str) -> str:
    """Returns a thread's status."""
    return str(_get(served, f"/threads/{thread}")["status"])


def runs(served: Served, thread: str) -> list[dict[str, Any]]:
    """Returns a thread's runs, the oldest first."""
    return _get(served, f"/threads/{thread}/runs")[::-1]


def status_of_left(served: Served, played: Round) -> str:
    """Returns the status of the run that the client left."""
    return str(_get(served, f"/threads/{played.thread}/runs/{played.left.run}")["status"])


def journaled_charges(served: Served, rounds: Sequence[Round]) -> dict[str, dict[str, Any]]:
    """Returns the journal's entries of charges, by the key that the provider was given."""
    entries = [entry for one in rounds for entry in _get(served, f"/threads/{one.thread}/effects")]
    return {entry["key"]: entry for entry in entries if entry["name"] == "charge"}


def charges_made(served: Served, rounds: Sequence[Round]) -> list[dict[str, Any]]:
    """Returns the charges that the provider made for the bookings of these rounds."""
    asked = {asked.booking for one in rounds for asked in one.asked}
    effects = served.ledger()["effects"]
    return [e for e in effects if e["kind"] == "charge" and e["parameters"]["booking_id"] in asked]


def _get(served: Served, path: str) -> Any:
    answered = httpx.get(f"{served.url}{path}", trust_env=False)
    answered.raise_for_status()
    return answered.json()
