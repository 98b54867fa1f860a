"""Owns the activity that tells a turn's webhook how the turn ended."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.failures import translate
from adapter import webhook
from adapter.errors import NotFound, StoreUnavailable
from adapter.graphs import Project
from adapter.outcome import last_state, values_of
from adapter.run_form import run_json, when
from adapter.store import requests
from adapter.store.pool import Pool
from adapter.store.turns import FINAL
from adapter.wire import dumps
from workflows import names
from workflows.contracts import Webhook

log = logging.getLogger("turns")


class WebhookActivities:
    """Calls webhooks.

    Args:
        pool: PostgreSQL.
        project: the graphs, which read the states that are sent.
        private: whether webhooks may be on this machine or in a private network.
    """

    def __init__(self, pool: Pool, project: Project, *, private: bool) -> None:
        self._pool = pool
        self._project = project
        self._private = private

    @activity.defn(name=names.WEBHOOK)
    async def webhook(self, request: Webhook) -> str:
        """Sends the run with its values, or its error; returns what became of it.

        The same end of a turn is sent with the same Idempotency-Key, however often it takes.
        """
        try:
            turn = await requests.get_turn(self._pool, request.thread_id, request.turn_id)
            url = turn["request"].get("webhook")
            if url is None or turn["status"] not in FINAL:
                return "nothing to tell"
            body = await self._body(turn, request)
        except NotFound:
            return "nothing to tell"  # the turn or its thread was deleted meanwhile
        except Exception as exc:
            raise translate(exc) from None
        headers = {"Idempotency-Key": f"{request.turn_id}:{request.end}"}
        try:
            status = await webhook.post(url, body, headers=headers, private=self._private)
        except webhook.Refused as exc:
            log.warning("the webhook of turn %s is given up: %s", request.turn_id, exc)
            raise ApplicationError(str(exc), type="WebhookRefused", non_retryable=True) from None
        except webhook.NotThere as exc:
            log.info("the webhook of turn %s is called again: %s", request.turn_id, exc)
            raise ApplicationError(str(exc), type="WebhookNotThere") from None
        return f"answered with {status}"

    async def _body(self, turn: dict[str, Any], request: Webhook) -> bytes:
        payload: dict[str, Any] = {
            **run_json(turn),
            "run_started_at": when(datetime.fromtimestamp(request.started_at, UTC)),
            "run_ended_at": when(turn["updated_at"]),
            "webhook_sent_at": when(datetime.now(UTC)),
            "values": None,
        }
        if turn["error"] is not None:
            payload["error"] = turn["error"]
        thread = await requests.get_thread(self._pool, request.thread_id)
        try:
            snapshot = await last_state(self._project, self._pool, thread, turn["graph_id"], request.turn_id)
            payload["values"] = values_of(snapshot)
        except StoreUnavailable:
            raise
        except Exception as exc:  # of the user's own code, or the project has no such graph any more
            log.warning("the state of thread %s cannot be read", request.thread_id, exc_info=exc)
        return dumps(payload).encode()
