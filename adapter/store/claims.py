"""Owns claims: who may write in a thread, or in one of its branches, and what a transaction does to make sure (I5).

Temporal issues the tokens; `turns.fence` holds the newest of each scope. Next: `adapter/writer.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adapter.errors import StaleAttempt
from adapter.store.pool import Connection, Pool, ending_blockers
from adapter.store.sql import query


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to write in one scope of a thread, as claimed by one activity attempt.

    Attributes:
        thread_id: the thread.
        scope: '' for the whole thread, else task ids from the root down, joined by '/'.
        token: when Temporal scheduled the attempt (server clock, nanoseconds).
        attempt: the attempt's number, which decides between equal tokens.
    """

    thread_id: str
    scope: str
    token: int
    attempt: int

    @property
    def scopes(self) -> list[str]:
        """The scopes around this one, outermost first, then itself."""
        parts = self.scope.split("/") if self.scope else []
        return ["", *("/".join(parts[: i + 1]) for i in range(len(parts)))]


@dataclass(frozen=True, slots=True)
class Renewal:
    """A claim that takes the place of another one's with the first transaction under it, and not before.

    Attributes:
        old: the claim of the activity before, of the whole thread.
        run_id: Temporal's run, which has the turn.
        head: the thread's newest checkpoint.
    """

    old: Claim
    run_id: str
    head: str | None


def claim_params(claim: Claim, turn_id: str | None = None) -> dict[str, Any]:
    """Returns the parameters of the `claim` statement; with a turn, it claims only what that may still run in."""
    scopes = claim.scopes
    return {
        "turn_id": turn_id,
        "thread_id": claim.thread_id,
        "scope": claim.scope,
        "around": scopes[:-1],
        "prefix": f"{claim.scope}/" if claim.scope else "",
        "token": claim.token,
        "attempt": claim.attempt,
    }


async def assert_claim(conn: Connection, claim: Claim) -> None:
    """Makes the caller's transaction fail unless the claim is still the newest (I5); locks it until the end."""
    await conn.execute(
        query("assert_claim"),
        {
            "thread_id": claim.thread_id,
            "scopes": claim.scopes,
            "token": claim.token,
            "attempt": claim.attempt,
        },
    )


async def renew_claim(conn: Connection, claim: Claim, renewal: Renewal, turn_id: str) -> None:
    """Takes a claim of the whole thread in place of an older one, or makes the caller's transaction fail."""
    await conn.execute(
        query("renew_claim"),
        {
            "thread_id": claim.thread_id,
            "turn_id": turn_id,
            "run_id": renewal.run_id,
            "head": renewal.head,
            "old": renewal.old.token,
            "old_attempt": renewal.old.attempt,
            "token": claim.token,
            "attempt": claim.attempt,
        },
    )


async def take(conn: Connection, claim: Claim, pool: Pool) -> None:
    """Claims the scope for this attempt, inside the caller's transaction.

    It waits for transactions of older attempts that are under way, and ends those that take too long.

    Raises:
        StaleAttempt: a newer attempt holds the scope, or one around it; both tokens are named.
    """
    with ending_blockers(pool, conn):
        row = await (await conn.execute(query("claim"), claim_params(claim))).fetchone()
    if row is None:
        raise await stale(conn, claim)


async def stale(conn: Connection, claim: Claim) -> StaleAttempt:
    """Returns what to raise for a claim that was refused."""
    held = await (
        await conn.execute(query("current_claims"), {"thread_id": claim.thread_id, "scopes": claim.scopes})
    ).fetchall()
    newest = ", ".join(f'"{r["scope"]}" {r["token"]}/{r["attempt"]}' for r in held) or "none"
    return StaleAttempt(
        f'attempt {claim.token}/{claim.attempt} may not claim "{claim.scope}" of thread {claim.thread_id}: '
        f"the newest claims are {newest}"
    )
