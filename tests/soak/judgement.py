"""Owns the judgement: what the clients asked for, against the API, the provider's ledger and the checkpoints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

from tests.disconnect.trees import read_tree
from tests.soak.client import Conversation
from tests.soak.stack import Soaked


@dataclass
class Judgement:
    """What was found.

    Attributes:
        turns: that were accepted.
        attempts: to charge.
        effects: charges that happened.
        breaks: of the clients' streams.
        lost: what is missing, one line each.
        doubled: what is there twice.
    """

    turns: int = 0
    attempts: int = 0
    effects: int = 0
    breaks: int = 0
    lost: list[str] = field(default_factory=list[str])
    doubled: list[str] = field(default_factory=list[str])


async def judge(soaked: Soaked, held: Sequence[Conversation]) -> Judgement:
    """Compares what was asked for with what is there."""
    found = Judgement()
    _judge_provider(soaked, held, found)
    async with httpx.AsyncClient(base_url=soaked.dev.url, timeout=60, trust_env=False) as http:
        for one in held:
            await _judge_api(http, one, found)
    async with AsyncPostgresSaver.from_conn_string(soaked.dev.database_url) as saver:
        for one in held:
            tree = await read_tree(saver, one.thread)
            wanted = [turn.booking for turn in one.turns]
            if tree.history() != wanted:
                found.lost.append(f"thread {one.thread} tells of {tree.history()} instead of {wanted}")
            if tree.forked:
                found.doubled.append(f"thread {one.thread} forked")
    return found


def _judge_provider(soaked: Soaked, held: Sequence[Conversation], found: Judgement) -> None:
    tried, acted = (
        Counter((entry["kind"], entry["parameters"]["booking_id"]) for entry in soaked.ledger()[what])
        for what in ("attempts", "effects")
    )
    for turn in (turn for one in held for turn in one.turns):
        found.attempts += tried["charge", turn.booking]
        found.effects += acted["charge", turn.booking]
        for kind in ("charge", "notification"):
            count = acted[kind, turn.booking]
            if count != 1:
                line = f"{kind} of {turn.booking} happened {count} times"
                (found.doubled if count else found.lost).append(line)


async def _judge_api(http: httpx.AsyncClient, one: Conversation, found: Judgement) -> None:
    runs = (await http.get(f"/threads/{one.thread}/runs", params={"limit": 100})).json()
    ids = [run["run_id"] for run in reversed(runs)]
    if ids != [turn.run for turn in one.turns]:
        found.doubled.append(f"thread {one.thread} has the runs {ids} for {[t.run for t in one.turns]}")
    status = (await http.get(f"/threads/{one.thread}")).json()["status"]
    if status != "idle":
        found.lost.append(f"thread {one.thread} is {status}")
    for turn in one.turns:
        found.turns += 1
        found.breaks += turn.breaks
        if turn.status != "success":
            found.lost.append(f"turn {turn.run} of {turn.booking} ended as {turn.status}")
        if turn.offsets != sorted(set(turn.offsets)):
            found.doubled.append(f"the client of {turn.booking} saw the events {turn.offsets}")
        if turn.offsets != list(range(1, len(turn.offsets) + 1)) or len(turn.offsets) < 8:
            found.lost.append(f"the client of {turn.booking} saw only the events {turn.offsets}")
