"""Owns the counting: rounds played, against the provider's ledger and the threads' checkpoints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

from tests.disconnect.rounds import KilledRound, Round
from tests.disconnect.served import Served
from tests.disconnect.trees import read_tree


@dataclass(frozen=True)
class Counts:
    """What rounds left behind.

    Attributes:
        asked: turns asked for; each of them for a booking of its own.
        completed: those that ran to their end, on whatever branch of the thread's checkpoints.
        in_history: those whose answer is in the conversation in the end.
        charged: bookings that were charged.
        charged_again: bookings that were charged more than once.
        orphans: charges that no state of the thread's final lineage holds.
        unwritten: those of them that are not even a pending write of it.
        forked: threads with a checkpoint that has two children.
        threads: all threads.
    """

    asked: int
    completed: int
    in_history: int
    charged: int
    charged_again: int
    orphans: int
    unwritten: int
    forked: int
    threads: int


async def count(served: Served, rounds: Sequence[Round]) -> Counts:
    """Counts what rounds left behind."""
    asked = {asked.booking for one in rounds for asked in one.asked}
    charges = {
        effect["effect_id"]: str(effect["parameters"]["booking_id"])
        for effect in served.ledger()["effects"]
        if effect["kind"] == "charge" and effect["parameters"]["booking_id"] in asked
    }
    times = Counter(charges.values())
    async with AsyncPostgresSaver.from_conn_string(served.database_url) as saver:
        trees = [await read_tree(saver, one.thread) for one in rounds]
    orphans = charges.keys() - {receipt for tree in trees for receipt in tree.receipts()}
    return Counts(
        asked=len(asked),
        completed=len(asked & {booking for tree in trees for booking in tree.completed()}),
        in_history=len(asked & {booking for tree in trees for booking in tree.history()}),
        charged=len(times),
        charged_again=sum(n > 1 for n in times.values()),
        orphans=len(orphans),
        unwritten=len(orphans - {receipt for tree in trees for receipt in tree.pending_receipts()}),
        forked=sum(tree.forked for tree in trees),
        threads=len(trees),
    )


@dataclass(frozen=True)
class KilledCounts:
    """What rounds with a kill left behind.

    Attributes:
        rounds: how many.
        by_itself: turns that came to their end without the client's doing anything.
        sent_again: messages sent again, because their stream had broken.
        attempts: charges that the provider was asked for, by round.
        effects: charges that it made, by round.
        orphans: charges that no state of the thread's final lineage holds.
    """

    rounds: int
    by_itself: int
    sent_again: int
    attempts: tuple[int, ...]
    effects: tuple[int, ...]
    orphans: int


async def count_killed(served: Served, rounds: Sequence[KilledRound]) -> KilledCounts:
    """Counts what rounds with a kill left behind."""
    effects = [served.charges("effects", one.booking) for one in rounds]
    async with AsyncPostgresSaver.from_conn_string(served.database_url) as saver:
        known = [(await read_tree(saver, one.thread)).receipts() for one in rounds]
    return KilledCounts(
        rounds=len(rounds),
        by_itself=sum(one.by_itself for one in rounds),
        sent_again=sum(not one.stream_ended for one in rounds),
        attempts=tuple(len(served.charges("attempts", one.booking)) for one in rounds),
        effects=tuple(map(len, effects)),
        orphans=sum(e["effect_id"] not in k for made, k in zip(effects, known, strict=True) for e in made),
    )
