"""Owns what an idempotency key means to the provider: act once, replay, or refuse.

The rules are Stripe's (https://docs.stripe.com/api/idempotent_requests): the first request with a key acts
and its answer is recorded; the same request again gets the recorded answer; a request that comes while the
first one is still running gets 409; the same key with other parameters gets 400; without a key every request
acts. Next: `booking/provider.py`, which puts HTTP around it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal
from uuid import uuid4

from booking.ledger import Effect, Kind, Ledger, Parameters

_PREFIXES: dict[Kind, str] = {"charge": "ch", "refund": "re", "notification": "nt"}


@dataclass(frozen=True)
class Delays:
    """Seconds to wait before an effect happens, and between the effect and its answer."""

    before: float = 0.0
    after: float = 0.0


@dataclass(frozen=True)
class Answer:
    """An effect to answer with, and whether an earlier request made it."""

    effect: Effect
    replayed: bool


@dataclass(frozen=True)
class Refusal:
    """Why a request was turned away."""

    reason: Literal["in_progress", "mismatch"]
    message: str


class Payments:
    """The provider's state, rebuilt from the ledger: what each key stands for and what came of it."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._meaning: dict[str, tuple[Kind, Parameters]] = {}
        self._recorded: dict[str, Effect] = {}
        self._in_flight: set[str] = set()
        for attempt in ledger.attempts:
            if attempt.key is not None and attempt.outcome == "accepted":
                self._meaning.setdefault(attempt.key, (attempt.kind, attempt.parameters))
        for effect in ledger.effects:
            if effect.key is not None:
                self._recorded[effect.key] = effect

    async def act(
        self, kind: Kind, key: str | None, parameters: Parameters, delays: Delays
    ) -> Answer | Refusal:
        """Makes the effect happen, unless the key says it has or may be about to."""
        effect_id = f"{_PREFIXES[kind]}_{uuid4().hex[:16]}"
        if key is None:
            self.ledger.attempt(kind, None, parameters, "accepted", effect_id)
            return Answer(await self._perform(kind, None, parameters, effect_id, delays), replayed=False)

        settled = self._look_up(kind, key, parameters)
        if settled is not None:
            return settled
        # Everything above runs without an await: on the one event loop there is no moment between looking the
        # key up and claiming it, so of any number of simultaneous requests exactly one gets past this line.
        self._in_flight.add(key)
        try:
            self._meaning[key] = (kind, parameters)
            self.ledger.attempt(kind, key, parameters, "accepted", effect_id)
            self._recorded[key] = effect = await self._perform(kind, key, parameters, effect_id, delays)
            return Answer(effect, replayed=False)
        finally:
            self._in_flight.discard(key)

    def _look_up(self, kind: Kind, key: str, parameters: Parameters) -> Answer | Refusal | None:
        meaning = self._meaning.get(key, (kind, parameters))
        if meaning != (kind, parameters):
            self.ledger.attempt(kind, key, parameters, "mismatch")
            return Refusal(
                "mismatch", f"key {key!r} stands for another {meaning[0]}; use a new key for this one"
            )
        if key in self._in_flight:
            self.ledger.attempt(kind, key, parameters, "in_progress")
            return Refusal(
                "in_progress", f"the first request with key {key!r} is still running; send it again"
            )
        recorded = self._recorded.get(key)
        if recorded is None:
            return None
        self.ledger.attempt(kind, key, parameters, "replayed", recorded.effect_id)
        return Answer(recorded, replayed=True)

    async def _perform(
        self, kind: Kind, key: str | None, parameters: Parameters, effect_id: str, delays: Delays
    ) -> Effect:
        await asyncio.sleep(delays.before)
        effect = self.ledger.effect(kind, key, parameters, effect_id)
        await asyncio.sleep(delays.after)
        return effect
