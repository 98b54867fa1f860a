"""Owns the wire form of refusals: `{"detail": "<one string>"}`, which is what the clients read.

Only a `PublicError`'s own text leaves the process; whatever else goes wrong is a 500 without a reason, and
the reason is in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from adapter.errors import NotStorable, PublicError, StoreBusy, StoreUnavailable
from adapter.wire import dumps

log = logging.getLogger("turns.api")


class Unavailable(PublicError):
    """A part this process depends on does not answer; repeating the request later works."""

    status = 503


class Refused(PublicError):
    """An auth handler refuses the request, in its own words."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers


class HandlerFailed(PublicError):
    """An auth handler did not answer; the log says why, the client is told nothing."""

    status = 500


class TooLarge(PublicError):
    """The request's body is larger than this process accepts."""

    status = 413


def one_line(errors: Sequence[Mapping[str, Any]]) -> str:
    """Returns pydantic's first complaint as `where: what`, without the value it complains about."""
    first = errors[0]
    where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path", "header"))
    what = str(first["msg"]).removeprefix("Value error, ")
    return f"{where}: {what}" if where else what


def refusal(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Returns a refusal as clients expect it."""
    body = dumps({"detail": detail})
    return Response(body, status, headers=dict(headers) if headers else None, media_type="application/json")


async def _public(_: Request, exc: Exception) -> Response:
    assert isinstance(exc, PublicError)
    return refusal(exc.status, str(exc), exc.headers if isinstance(exc, Refused) else None)


async def _store(_: Request, exc: Exception) -> Response:
    log.warning("refused with 503: %s", exc)
    if isinstance(exc, StoreBusy):
        return refusal(503, "No database connection came free in time. Try again.")
    return refusal(503, "The database is not reachable. Try again.")


async def _not_storable(_: Request, exc: Exception) -> Response:
    log.info("refused with 422: %s", exc)
    return refusal(422, "The request holds a value that PostgreSQL cannot store")


async def _validation(_: Request, exc: Exception) -> Response:
    assert isinstance(exc, RequestValidationError)
    return refusal(422, one_line(exc.errors()))


async def _http(_: Request, exc: Exception) -> Response:
    assert isinstance(exc, HTTPException)
    return refusal(exc.status_code, exc.detail, exc.headers)


async def _left(_: Request, __: Exception) -> Response:
    """Answers a client that left before its request was whole: nobody reads it, and nothing is wrong here."""
    return Response(status_code=400)


def install(app: FastAPI) -> None:
    """Registers the handlers; anything else becomes Starlette's plain-text 500."""
    app.add_exception_handler(PublicError, _public)
    app.add_exception_handler(StoreUnavailable, _store)
    app.add_exception_handler(NotStorable, _not_storable)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _left)
