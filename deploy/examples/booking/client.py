"""Owns this example's side of the provider's HTTP: one thin function an operation.

Every function takes the idempotency key it sends and adds nothing to it: where the key comes from is the
caller's business (`adapter.effects.effect` in a graph). The provider is the one at BOOKING_PROVIDER_URL, or
without that one that this machine's workers share (`booking/provider_process.py`).
"""

from __future__ import annotations

import asyncio
import os
import ssl
from functools import cache
from pathlib import Path

import httpx
from pydantic import BaseModel, TypeAdapter
from typing_extensions import TypedDict

from booking import provider_process

HTTP_CONFLICT = 409
TIMEOUT = httpx.Timeout(30.0, connect=5.0)
PAUSES_SECONDS = (0.1, 0.5, 2.0)  # before the 2nd, 3rd and 4th time the identical request is sent


class Receipt(TypedDict):
    """What the provider recorded: the effect's id, its time (seconds since the epoch) and its parameters."""

    id: str
    object: str
    status: str
    created: float
    parameters: dict[str, str | int]


class InProgress(Exception):
    """An earlier request with this key is still running: its outcome is unknown yet, and near.

    Attributes:
        in_progress: tells `effect` to make the identical call again instead of failing.
        retry_after: seconds to wait before that.
    """

    in_progress = True

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Refused(Exception):
    """The provider will not do this; sending it again will not help.

    Attributes:
        status: the HTTP status it refused with.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


async def charge(*, booking_id: str, amount: int, idempotency_key: str) -> Receipt:
    """Charges `amount` (whole units of the currency) for a booking.

    Raises:
        InProgress: The same charge is being made by an earlier request. Retryable, with the same key.
        Refused: The provider refused, for example because the key was used for something else. Not retryable.
        httpx.HTTPError: The provider could not be reached or broke down. Retryable, with the same key.
    """
    return await _post("/charges", {"booking_id": booking_id, "amount": amount}, idempotency_key)


async def refund(*, order_id: str, amount: int, idempotency_key: str) -> Receipt:
    """Gives `amount` (whole units of the currency) back for an order. Raises as `charge` does."""
    return await _post("/refunds", {"order_id": order_id, "amount": amount}, idempotency_key)


async def notify(*, booking_id: str, text: str, idempotency_key: str) -> Receipt:
    """Sends a text to whoever made the booking. Raises as `charge` does."""
    return await _post("/notifications", {"booking_id": booking_id, "text": text}, idempotency_key)


async def _post(path: str, body: dict[str, str | int], key: str) -> Receipt:
    # A lost answer leaves open whether the effect happened. Asking again with the same key is safe either
    # way, and is done here, because a caller that starts over may not have the same key.
    for pause in PAUSES_SECONDS:
        try:
            return await _post_once(path, body, key)
        except httpx.TransportError:
            provider_process.forget(_data_dir())
            await asyncio.sleep(pause)
    return await _post_once(path, body, key)


async def _post_once(path: str, body: dict[str, str | int], key: str) -> Receipt:
    url = os.environ.get("BOOKING_PROVIDER_URL")
    if not url:
        url = await asyncio.to_thread(provider_process.shared_url, _data_dir())
    # A connection a call: calls are seconds apart, and a pool would be bound to one event loop.
    async with httpx.AsyncClient(verify=_tls(), timeout=TIMEOUT, trust_env=False) as http:
        response = await http.post(f"{url.rstrip('/')}{path}", json=body, headers={"Idempotency-Key": key})
    if response.status_code == HTTP_CONFLICT:
        error = _Refusal.model_validate_json(response.content).error
        raise InProgress(error.message, error.retry_after)
    if response.is_client_error:
        raise Refused(
            f"the provider refused {path} with {response.status_code}: {response.text}", response.status_code
        )
    return _RECEIPT.validate_json(response.raise_for_status().content)


def _data_dir() -> Path:
    return Path(os.environ.get("TURNS_DATA_DIR") or ".turns")


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()  # some 20 ms; httpx would build one a client


class _Error(BaseModel):
    message: str
    retry_after: float = 1.0


class _Refusal(BaseModel):
    error: _Error


_RECEIPT = TypeAdapter(Receipt)
