"""Owns the soak's command line: `python -m tests.soak` prints a table, in Markdown."""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

import httpx

from tests.soak.client import Conversation, conversations
from tests.soak.judgement import Judgement, judge
from tests.soak.stack import KINDS, Soaked, soaked


def main() -> None:
    """Runs the soak; exits with 1 if anything was lost or doubled."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--threads", type=int, default=200, help="conversations")
    parser.add_argument("--turns", type=int, default=5, help="turns of each")
    parser.add_argument("--at-once", type=int, default=40, help="conversations that are held at a time")
    parser.add_argument("--seed", type=int, default=1, help="chooses victims, moments and pauses")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two kills, on average")
    parser.add_argument(
        "--rolling", action="store_true", help="SIGTERM to ours in turn instead of SIGKILL to all"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="turns-soak-") as folder, soaked(Path(folder)) as stack:
        Path(folder).chmod(0o755)  # PostgreSQL runs as another user when we are root
        found, seconds = asyncio.run(soak(stack, options))
        print(table(stack, found, seconds, options))
        for line in (*found.lost, *found.doubled)[:50]:
            print(line)
        if found.lost or found.doubled:
            print(stack.dev.text, file=sys.stderr)
            sys.exit(1)


async def soak(stack: Soaked, options: argparse.Namespace) -> tuple[Judgement, float]:
    """Holds all conversations while processes end, then judges."""
    began = time.monotonic()
    chosen = random.Random(options.seed)

    def say(what: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {what}", file=sys.stderr, flush=True)

    held = conversations(options.threads, options.turns)
    ending = asyncio.create_task(
        stack.restart(say) if options.rolling else stack.kill(chosen, options.every, say)
    )
    holding = asyncio.create_task(_hold(stack, held, options, say))
    try:
        await asyncio.wait({ending, holding}, return_when=asyncio.FIRST_COMPLETED)
        if ending.done():
            ending.result()  # raises what made it stop
    finally:
        ending.cancel()
    await holding
    seconds = time.monotonic() - began
    await asyncio.gather(ending, return_exceptions=True)
    await asyncio.to_thread(stack.dev.settle)
    say("judging")
    return await judge(stack, held), seconds


async def _hold(stack: Soaked, held: list[Conversation], options: argparse.Namespace, say: object) -> None:
    places = asyncio.Semaphore(options.at_once)
    limits = httpx.Limits(max_connections=None)
    timeout = httpx.Timeout(60, connect=30)
    async with httpx.AsyncClient(
        base_url=stack.dev.url, timeout=timeout, limits=limits, trust_env=False
    ) as http:

        async def one(conversation: Conversation) -> None:
            async with places:
                await conversation.hold(
                    http, random.Random(f"{options.seed} {conversation.turns[0].booking}")
                )

        async with asyncio.TaskGroup() as all_of_them:
            for conversation in held:
                all_of_them.create_task(one(conversation))


def table(stack: Soaked, found: Judgement, seconds: float, options: argparse.Namespace) -> str:
    """Returns what was found."""
    verb = "restarted" if options.rolling else "killed"
    rows = [
        ("turns accepted", found.turns),
        *(
            (f"{kind} {verb}", stack.ended[kind])
            for kind in KINDS
            if stack.ended[kind] or not options.rolling
        ),
        ("streams that broke", found.breaks),
        ("attempts to charge", found.attempts),
        ("charges", found.effects),
        ("lost", len(found.lost)),
        ("doubled", len(found.doubled)),
        ("seconds", round(seconds)),
        ("seed", options.seed),
    ]
    return "\n".join(["| | |", "|---|--:|", *(f"| {name} | {value} |" for name, value in rows)])


if __name__ == "__main__":
    main()
