"""Owns the command line of the experiment: `python -m tests.disconnect` prints its tables, in Markdown."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import tempfile
from pathlib import Path

import psycopg

from tests import servers
from tests.disconnect import tables, told
from tests.disconnect.counts import Counts, KilledCounts, count, count_killed
from tests.disconnect.handlers import SHAPES
from tests.disconnect.rounds import play_all, play_killed
from tests.disconnect.served import by_hand, ours


class Experiment:
    """Measures one server after the other, each on a database of its own."""

    def __init__(self, postgres: servers.Postgres, folder: Path, options: argparse.Namespace) -> None:
        self.postgres = postgres
        self.folder = folder
        self.rounds: int = options.rounds
        self.killed_rounds: int = options.killed_rounds
        self.seed: int = options.seed
        self.counts: dict[str, Counts] = {}
        self.killed: dict[str, KilledCounts] = {}
        self.notes: list[str] = []

    async def measure_by_hand(self, shape: str) -> None:
        """Measures one of the handlers."""
        _progress(shape)
        async with by_hand(shape, self.postgres.clone(), self.folder / shape) as served:
            rounds = await play_all(served, "round", rounds=self.rounds, seed=self.seed)
            self.counts[shape] = await count(served, rounds)
            killed = await play_killed(served, "killed", rounds=self.killed_rounds)
            self.killed[f"{shape}, web process"] = await count_killed(served, killed)

    async def measure_ours(self, address: str) -> None:
        """Measures this project under both policies."""
        async with ours(self.postgres.clone(), address, self.folder / "ours") as served:
            for policy in ("continue", "cancel"):
                _progress(f"ours, {policy}")
                rounds = await play_all(
                    served, policy, rounds=self.rounds, seed=self.seed, on_disconnect=policy
                )
                self.counts[name := f"ours, on_disconnect {policy}"] = await count(served, rounds)
                journal = told.journaled_charges(served, rounds)
                made = told.charges_made(served, rounds)
                left = [told.status_of_left(served, one) for one in rounds]
                self.notes.append(
                    f"{name}: {sum(charge['key'] in journal for charge in made)} of {len(made)} charges stand "
                    "in the effect journal with the turn that they were made for; turns that were left ended as "
                    + ", ".join(f"{status} ({left.count(status)})" for status in sorted(set(left)))
                    + "."
                )
            for what, web in (("worker", False), ("web process", True)):
                _progress(f"ours, {what} killed")
                killed = await play_killed(served, f"killed-{what[:3]}", rounds=self.killed_rounds, web=web)
                self.killed[f"ours, {what}"] = await count_killed(served, killed)


async def measure(options: argparse.Namespace) -> None:
    """Measures all and prints what was found."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turns-disconnect-")))
        postgres = await asyncio.to_thread(stack.enter_context, servers.postgres())
        address = await asyncio.to_thread(stack.enter_context, servers.temporal())
        with psycopg.connect(postgres.uri) as conn:
            server_version = conn.info.server_version
        experiment = Experiment(postgres, folder, options)
        for shape in SHAPES:
            await experiment.measure_by_hand(shape)
        await experiment.measure_ours(address)
    conditions = tables.conditions(
        server_version, rounds=options.rounds, killed_rounds=options.killed_rounds, seed=options.seed
    )
    parts = (
        tables.left_and_written_twice(experiment.counts),
        tables.LEGEND,
        *experiment.notes,
        tables.killed(experiment.killed),
        tables.KILLED_LEGEND,
        conditions,
    )
    print("\n\n".join(parts))


def _progress(what: str) -> None:
    print(f"measuring {what}", file=sys.stderr, flush=True)


def main() -> None:
    """Runs the experiment."""
    parser = argparse.ArgumentParser(prog="python -m tests.disconnect", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="rounds for each server")
    parser.add_argument("--killed-rounds", type=int, default=3, help="further rounds that kill a process")
    parser.add_argument("--seed", type=int, default=1, help="chooses the moments at which clients leave")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
