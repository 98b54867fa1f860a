"""Owns one soak: conversations are held while processes end; then it is judged."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import httpx

from tests.soak.client import Conversation
from tests.soak.judgement import Judgement, judge
from tests.soak.stack import Soaked

_ENDLESS = 1_000_000


@dataclass(frozen=True)
class Options:
    """How to soak.

    Attributes:
        threads: conversations.
        turns: of each, at least.
        at_once: conversations that are held at a time.
        seed: chooses victims, moments and pauses.
        every: seconds between two kills, on average.
        rolling: whether our processes are asked to stop in turn, instead of all kinds being killed.
        rounds: of kills or restarts, after which the conversations end; without, they end them.
    """

    threads: int
    turns: int
    at_once: int
    seed: int
    every: float
    rolling: bool
    rounds: int | None = None


async def soak(stack: Soaked, options: Options) -> tuple[Judgement, float]:
    """Holds all conversations while processes end; returns the judgement and how many seconds they took."""
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {what}", file=sys.stderr, flush=True)

    held = [Conversation(number) for number in range(1, options.threads + 1)]
    rounds = options.rounds or _ENDLESS
    ending = asyncio.create_task(
        stack.restart(rounds, say)
        if options.rolling
        else stack.kill(random.Random(options.seed), options.every, rounds, say)
    )
    holding = asyncio.create_task(
        _hold(stack, held, options, lambda: options.rounds is not None and not ending.done())
    )
    try:
        await asyncio.wait({ending, holding}, return_when=asyncio.FIRST_COMPLETED)
        if ending.done():
            ending.result()  # raises what made it stop
        await holding
    finally:
        ending.cancel()
        holding.cancel()
        await asyncio.gather(ending, holding, return_exceptions=True)
    seconds = time.monotonic() - began
    await asyncio.to_thread(stack.dev.settle)
    say("judging")
    return await judge(stack, held), seconds


async def _hold(
    stack: Soaked, held: list[Conversation], options: Options, goes_on: Callable[[], bool]
) -> None:
    places = asyncio.Semaphore(options.at_once)
    async with (
        httpx.AsyncClient(
            base_url=stack.dev.url,
            timeout=httpx.Timeout(60, connect=30),
            limits=httpx.Limits(max_connections=None),
            trust_env=False,
        ) as http,
        asyncio.TaskGroup() as all_of_them,
    ):

        async def one(conversation: Conversation) -> None:
            async with places:
                chosen = random.Random(f"{options.seed} {conversation.number}")
                await conversation.hold(http, options.turns, goes_on, chosen)

        for conversation in held:
            all_of_them.create_task(one(conversation))
