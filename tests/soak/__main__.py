"""Owns the soak's command line: `python -m tests.soak` prints a table, in Markdown."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.soak.judgement import Judgement
from tests.soak.soaking import Options, soak
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
    options = Options(**vars(parser.parse_args()))
    with tempfile.TemporaryDirectory(prefix="turns-soak-") as folder:
        Path(folder).chmod(0o755)  # PostgreSQL runs as another user when we are root
        with soaked(Path(folder)) as stack:
            found, seconds = asyncio.run(soak(stack, options))
            print(table(stack, found, seconds, options))
            for line in (*found.lost, *found.doubled)[:50]:
                print(line)
            if found.lost or found.doubled:
                print(stack.dev.text, file=sys.stderr)
                sys.exit(1)


def table(stack: Soaked, found: Judgement, seconds: float, options: Options) -> str:
    """Returns what was found."""
    verb = "restarted" if options.rolling else "killed"
    ended = [
        (f"{kind} {verb}", stack.ended[kind]) for kind in KINDS if stack.ended[kind] or not options.rolling
    ]
    rows = [
        ("turns accepted", found.turns),
        *ended,
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
