"""Owns the payment provider's process: its HTTP routes and its command line.

Run it with `python -m booking.provider --port 0 --ledger PATH` where `deploy/examples` is on the path, or by
this file's own path. It listens on 127.0.0.1 only, prints its URL in one line once it accepts connections,
and goes on with a request whose client has left, as a real provider does. Next: `booking/client.py`, the
other end.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import uvicorn
from fastapi import FastAPI, Header
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

if not __package__:
    # Started by its path: the directory that holds the package is not on the path yet.
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from booking.ledger import Kind, Ledger, LedgerInUse
from booking.payments import Answer, Delays, Payments

RETRY_AFTER_SECONDS = 0.5
_STATUS = {"in_progress": 409, "mismatch": 400}
_CODE = {"in_progress": "idempotency_key_in_use", "mismatch": "idempotency_key_reused"}

IdempotencyKey = Annotated[str | None, Header(min_length=1, max_length=255)]


class _Body(BaseModel):
    """What every request may say; the delays are no parameters, so a repeat need not repeat them."""

    model_config = ConfigDict(extra="forbid")

    delay_before: float | None = Field(default=None, ge=0, exclude=True)
    delay_after: float | None = Field(default=None, ge=0, exclude=True)


class Charge(_Body):
    """Takes `amount` (whole units of the currency) for a booking."""

    booking_id: str
    amount: int = Field(gt=0)


class Refund(_Body):
    """Gives `amount` (whole units of the currency) back for an order."""

    order_id: str
    amount: int = Field(gt=0)


class Notification(_Body):
    """Sends `text` to whoever made the booking."""

    booking_id: str
    text: str


def create_app(payments: Payments, delays: Delays) -> FastAPI:
    """Returns the HTTP application; `delays` hold for requests that name none."""
    app = FastAPI(title="Payment provider", docs_url=None, redoc_url=None, openapi_url=None)

    async def act(kind: Kind, key: str | None, body: _Body) -> JSONResponse:
        waits = Delays(
            before=delays.before if body.delay_before is None else body.delay_before,
            after=delays.after if body.delay_after is None else body.delay_after,
        )
        result = await payments.act(kind, key, body.model_dump(), waits)
        if not isinstance(result, Answer):
            error = {
                "code": _CODE[result.reason],
                "message": result.message,
                "retry_after": RETRY_AFTER_SECONDS,
            }
            return JSONResponse({"error": error}, _STATUS[result.reason])
        effect = result.effect
        receipt = {
            "id": effect.effect_id,
            "object": effect.kind,
            "status": "succeeded",
            "created": effect.time,
            "parameters": effect.parameters,
        }
        return JSONResponse(receipt, headers={"Idempotent-Replayed": "true"} if result.replayed else None)

    @app.post("/charges")
    async def charge(body: Charge, idempotency_key: IdempotencyKey = None) -> JSONResponse:
        return await act("charge", idempotency_key, body)

    @app.post("/refunds")
    async def refund(body: Refund, idempotency_key: IdempotencyKey = None) -> JSONResponse:
        return await act("refund", idempotency_key, body)

    @app.post("/notifications")
    async def notify(body: Notification, idempotency_key: IdempotencyKey = None) -> JSONResponse:
        return await act("notification", idempotency_key, body)

    @app.get("/ledger")
    async def ledger() -> JSONResponse:
        return JSONResponse(
            {
                "attempts": [attempt.model_dump() for attempt in payments.ledger.attempts],
                "effects": [effect.model_dump() for effect in payments.ledger.effects],
            }
        )

    @app.get("/health")
    async def health() -> JSONResponse:
        return JSONResponse({"ledger": str(payments.ledger.path)})

    return app


async def _serve(server: uvicorn.Server, listener: socket.socket, users: Path | None, linger: float) -> None:
    watch = asyncio.create_task(_stop_when_unused(server, users, linger)) if users else None
    try:
        await server.serve(sockets=[listener])
    finally:
        if watch is not None:
            watch.cancel()


async def _stop_when_unused(server: uvicorn.Server, users: Path, linger: float) -> None:
    """Stops the server when for `linger` seconds no process has held its shared lock on the file `users`.

    The kernel drops a lock with its process, so a killed worker stops counting without saying good-bye. The
    final lock is kept until this process is gone: a process that arrives meanwhile waits for its own lock,
    and then finds a provider that is surely dead instead of one that is about to be.
    """
    file = os.open(users, os.O_RDWR | os.O_CREAT, 0o600)
    loop = asyncio.get_running_loop()
    last_used = loop.time()
    while True:
        await asyncio.sleep(min(1.0, linger))
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            last_used = loop.time()
            continue
        if loop.time() - last_used >= linger:
            server.should_exit = True
            return
        fcntl.flock(file, fcntl.LOCK_UN)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="booking.provider", description="A payment provider to try with.")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--ledger", type=Path, required=True, help="file of JSON lines, kept across restarts")
    parser.add_argument("--delay-before", type=float, default=0.0, help="seconds before an effect happens")
    parser.add_argument("--delay-after", type=float, default=0.0, help="seconds between effect and answer")
    parser.add_argument(
        "--url-file", type=Path, help="file to write the URL to, for those who did not start it"
    )
    parser.add_argument("--users", type=Path, help="stop when nobody holds a lock on this file any more")
    parser.add_argument("--linger", type=float, default=5.0, help="seconds to wait for new users before that")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the provider until it is told to stop."""
    options = _options(argv)
    try:
        ledger = Ledger(options.ledger)
    except LedgerInUse as exc:
        sys.exit(str(exc))
    app = create_app(Payments(ledger), Delays(options.delay_before, options.delay_after))
    # Listening before the URL is told: a connection made at once waits in the backlog instead of failing.
    listener = socket.create_server(("127.0.0.1", options.port), backlog=1024)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    if options.url_file is not None:
        draft: Path = options.url_file.with_suffix(".draft")
        draft.write_text(url)
        draft.replace(options.url_file)
    with contextlib.suppress(BrokenPipeError):  # the process that started this one may be gone already
        print(url, flush=True)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(server, listener, options.users, options.linger))


if __name__ == "__main__":
    main()
