"""Owns the provider's ledger: one append-only file of JSON lines, and the two lists read back from it.

Attempts and effects are separate records: an attempt says that a request arrived and how it was answered, an
effect says that money moved or a message left. Counting both is how a test tells "tried again" from "charged
again". This module knows neither HTTP nor what a key means; `booking/provider.py` does.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

Kind = Literal["charge", "refund", "notification"]
Outcome = Literal["accepted", "replayed", "in_progress", "mismatch"]
Parameters = dict[str, str | int]


class LedgerInUse(Exception):
    """Another process has this ledger open."""


class Attempt(BaseModel):
    """A request arrived. `effect_id` is the effect it was promised or shown, None when it was turned away."""

    model_config = ConfigDict(frozen=True)

    record: Literal["attempt"] = "attempt"
    time: float
    kind: Kind
    key: str | None
    parameters: Parameters
    outcome: Outcome
    effect_id: str | None


class Effect(BaseModel):
    """Something happened for good. An accepted attempt without one was cut off before it acted."""

    model_config = ConfigDict(frozen=True)

    record: Literal["effect"] = "effect"
    time: float
    kind: Kind
    key: str | None
    parameters: Parameters
    effect_id: str


_LINE: TypeAdapter[Attempt | Effect] = TypeAdapter(Annotated[Attempt | Effect, Field(discriminator="record")])


class Ledger:
    """An open ledger file and its records in memory, oldest first.

    The file is locked while it is open: two providers on one ledger would each act for the same key.

    Raises:
        LedgerInUse: Another process holds it; it can be opened once that process is gone.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.attempts: list[Attempt] = []
        self.effects: list[Effect] = []
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise LedgerInUse(f"{self.path} is open in another provider; stop that one first") from None
        self._load()

    def attempt(
        self,
        kind: Kind,
        key: str | None,
        parameters: Mapping[str, str | int],
        outcome: Outcome,
        effect_id: str | None = None,
    ) -> None:
        """Records that a request arrived and how it is answered."""
        attempt = Attempt(
            time=time.time(),
            kind=kind,
            key=key,
            parameters=dict(parameters),
            outcome=outcome,
            effect_id=effect_id,
        )
        self._append(attempt)
        self.attempts.append(attempt)

    def effect(
        self, kind: Kind, key: str | None, parameters: Mapping[str, str | int], effect_id: str
    ) -> Effect:
        """Records that the effect happened; from here on it has, whatever becomes of the answer."""
        effect = Effect(
            time=time.time(), kind=kind, key=key, parameters=dict(parameters), effect_id=effect_id
        )
        self._append(effect)
        self.effects.append(effect)
        return effect

    def close(self) -> None:
        """Closes the file and lets another process open it."""
        os.close(self._file)

    def _append(self, record: Attempt | Effect) -> None:
        # One write of one whole line: once it returns, the line is the kernel's and a SIGKILL cannot take it
        # back. Only a power cut could, and a pretend provider need not pay an fsync a line for that.
        os.write(self._file, record.model_dump_json().encode() + b"\n")

    def _load(self) -> None:
        content = self.path.read_bytes()
        whole, _, torn = content.rpartition(b"\n")
        if torn:
            # A line without its end was never acknowledged to anybody.
            os.ftruncate(self._file, len(content) - len(torn))
        for line in whole.splitlines():
            record = _LINE.validate_json(line)
            if isinstance(record, Attempt):
                self.attempts.append(record)
            else:
                self.effects.append(record)
