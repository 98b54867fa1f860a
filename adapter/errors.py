"""Owns the one tree of errors that this project raises on purpose.

Each message says what happened, on which id, and what to do. Driver errors are wrapped once, in
`adapter/store`. Only `PublicError` text may reach the wire.
"""

from __future__ import annotations


class TurnsError(Exception):
    """Root of the tree."""


class ConfigError(TurnsError):
    """The project or its environment is set up wrongly; one line, exit code 2 on the command line."""


class SchemaMismatch(ConfigError):
    """The database's schema is not the one this version works with."""


class PublicError(TurnsError):
    """A refusal whose text a client may read.

    Attributes:
        status: the HTTP status it maps to.
    """

    status = 400


class NotFound(PublicError):
    """What the client named does not exist, or is not theirs."""

    status = 404


class Forbidden(PublicError):
    """Who asks may not do this."""

    status = 403


class Conflict(PublicError):
    """The request does not go with the present state; repeating it later may work."""

    status = 409


class Invalid(PublicError):
    """The request itself cannot be carried out; repeating it will not work."""

    status = 422


class TooMany(PublicError):
    """A limit of this server is reached; repeating the request later may work."""

    status = 429


class AssistantChanged(TurnsError):
    """An assistant is not as it was when a request was put together; no turn was recorded. Retryable.

    Attributes:
        assistant_id: which one.
    """

    def __init__(self, assistant_id: str) -> None:
        super().__init__(f"assistant {assistant_id} was changed meanwhile")
        self.assistant_id = assistant_id


class StaleAttempt(TurnsError):
    """A newer attempt claimed this scope; nothing this attempt wrote since then was kept. Not retryable."""


class Overtaken(StaleAttempt):
    """Something happened to the thread while a run of its graph waited; its next attempt starts from what is stored."""


class EarlierFirst(TurnsError):
    """A turn of the thread that was accepted earlier has not ended; nothing was claimed.

    Attributes:
        turn_id: the earlier turn.
        seq: its place in the thread's order.
        hook: whether it has a webhook.
    """

    def __init__(self, turn_id: str, seq: int, hook: bool) -> None:
        super().__init__(f"turn {turn_id} was accepted earlier and has not ended")
        self.turn_id = turn_id
        self.seq = seq
        self.hook = hook


class Superseded(TurnsError):
    """The turn ended and later turns of its thread built on what it left; it cannot be tried again. Not retryable."""


class Undone(TurnsError):
    """The turn failed and its effects were compensated; it can be neither retried nor continued. Not retryable."""


class CompensationFailed(TurnsError):
    """A compensation raised; it is called again until its attempts are used up. Retryable."""


class StoreUnavailable(TurnsError):
    """PostgreSQL could not be reached or dropped the connection. Retryable."""


class StoreBusy(StoreUnavailable):
    """No connection to PostgreSQL came free in time: all are in use, or it is not reachable. Retryable."""


class NodeExited(TurnsError):
    """A node called `sys.exit`, which would end its worker. Treated as any exception of the node."""


class NotStorable(TurnsError):
    """A node's result cannot be kept in PostgreSQL; its text names no data. Not retryable."""
