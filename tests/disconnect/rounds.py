"""Owns what the client does in a round."""

from __future__ import annotations

import asyncio
import random
import uuid
from dataclasses import dataclass

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

from tests.disconnect.client import Asked, Client
from tests.disconnect.served import CHARGE_SECONDS, Served, kill_connected_to
from tests.disconnect.trees import read_tree

# The client leaves within this time after the second chunk: in the first half of the charge, or just before it.
LONGEST_LINGER = 0.5 * CHARGE_SECONDS
# How long a user looks at a broken stream before sending the message again.
PATIENCE_SECONDS = 5.0


@dataclass(frozen=True)
class Round:
    """One thread and its four requests: one left, one after it, two at the same time."""

    thread: str
    left: Asked
    after: Asked
    both: tuple[Asked, Asked]

    @property
    def asked(self) -> tuple[Asked, ...]:
        """All four, in the order of asking."""
        return (self.left, self.after, *self.both)


async def play(client: Client, label: str, linger: float) -> Round:
    """Leaves one turn, asks for another to its end, then for two at the same time."""
    thread = str(uuid.uuid4())
    left = await client.ask(thread, f"{label}-left", linger=linger)
    after = await client.ask(thread, f"{label}-after")
    both = await asyncio.gather(*(client.ask(thread, f"{label}-both-{n}") for n in (1, 2)))
    return Round(thread, left, after, (both[0], both[1]))


async def play_all(
    served: Served, label: str, *, rounds: int, seed: int, on_disconnect: str = "continue", at_once: int = 1
) -> list[Round]:
    """Plays rounds, so many at a time, and waits until nothing goes on any more."""
    # Only the moment of leaving is random; the same seed gives every server the same ones.
    chosen = random.Random(seed)
    lingers = [chosen.uniform(0, LONGEST_LINGER) for _ in range(rounds)]
    client, places = Client(served.url, on_disconnect), asyncio.Semaphore(at_once)

    async def played(number: int, linger: float) -> Round:
        async with places:
            return await play(client, f"{label}-{number}", linger)

    all_played = await asyncio.gather(*(played(n, linger) for n, linger in enumerate(lingers, 1)))
    await served.settled()
    return all_played


@dataclass(frozen=True)
class KilledRound:
    """One booking whose process was killed in the middle of the charge.

    Attributes:
        thread: the conversation.
        booking: what was asked for.
        stream_ended: whether the client's stream went on to its end all the same.
        by_itself: whether the turn came to its end without the client's doing anything.
    """

    thread: str
    booking: str
    stream_ended: bool
    by_itself: bool


async def play_killed(served: Served, label: str, *, rounds: int, web: bool = False) -> list[KilledRound]:
    """Plays rounds, one after the other, that kill what runs the graph, or else what answers the client."""
    played = [await _play_killed(served, f"{label}-{n}", web=web) for n in range(1, rounds + 1)]
    await served.settled()
    return played


async def _play_killed(served: Served, booking: str, *, web: bool) -> KilledRound:
    """Kills in the middle of the charge; a client whose stream breaks waits, and sends the same again.

    The same message with the same key, as a client does that does not know whether it was heard.
    """
    thread, key = str(uuid.uuid4()), str(uuid.uuid4())
    client, port = Client(served.url), asyncio.get_running_loop().create_future()
    asking = asyncio.create_task(client.ask(thread, booking, key=key, opened=port.set_result))
    while not served.charges("attempts", booking):
        await asyncio.sleep(0.01)
    if web:
        kill_connected_to(await port, served.web())
    else:
        kill_connected_to(served.provider_port(), served.graph())
        served.replace()
    asked = await asking
    by_itself = asked.ended or await _completes(served, thread, booking)
    if not asked.ended:
        again = await client.ask(thread, booking, key=key)
        assert again.ended, f"the stream of {booking} broke a second time"
    return KilledRound(thread, booking, asked.ended, by_itself)


async def _completes(served: Served, thread: str, booking: str) -> bool:
    async with AsyncPostgresSaver.from_conn_string(served.database_url) as saver:
        for _ in range(round(PATIENCE_SECONDS / 0.2)):
            if booking in (await read_tree(saver, thread)).completed():
                return True
            await asyncio.sleep(0.2)
    return False
