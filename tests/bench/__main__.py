"""Owns the bench's command line."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson
import uvloop

from tests.bench import tables, targets
from tests.bench.bench import CLASSES, Bench, interpreters, say, serving
from tests.bench.machine import machine, versions_of
from tests.bench.measure import Measured
from tests.bench.scenarios import history, memory, recovery, streaming, throughput, turns
from tests.processes import ROOT

Scenario = Callable[[Bench], Awaitable[Measured]]
SCENARIOS: Final[Mapping[str, Scenario]] = {
    "turns": turns.run,
    "history": history.run,
    "throughput": throughput.run,
    "streaming": streaming.run,
    "recovery": recovery.run,
    "memory": memory.run,
}
IDLE_LOAD: Final = 0.5
QUICK: Final[Mapping[str, Scenario]] = {"turns": partial(turns.run, cases=("effects_1",))}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        """Tells what is wrong in one line."""
        self.exit(2, f"{self.prog}: {message}\n")


def parse(arguments: list[str]) -> argparse.Namespace:
    """Reads the command line; ends the process with code 2 if it is wrong."""
    parser = _Parser(prog="python -m tests.bench", description="Measures what a turn costs.")
    parser.add_argument("scenarios", nargs="*", help=f"of {', '.join(SCENARIOS)}; all without any")
    parser.add_argument("--rounds", type=int, default=5, help="turns that each contender has (5)")
    parser.add_argument("--contenders", default=",".join(CLASSES), help="some of them, with commas between")
    parser.add_argument("--out", type=Path, help="the JSON file; .turns/bench/<time>.json without")
    parser.add_argument("--quick", action="store_true", help="two rounds of one case, ours and plain only")
    chosen = parser.parse_args(arguments)
    chosen.contenders = chosen.contenders.split(",")
    for what, given, known in (
        ("scenario", chosen.scenarios, SCENARIOS),
        ("contender", chosen.contenders, CLASSES),
    ):
        for name in given:
            if name not in known:
                parser.error(f"no {what} {name!r}; there are {', '.join(known)}")
    if chosen.rounds < 1:
        parser.error(f"--rounds must be 1 or more, not {chosen.rounds}")
    if chosen.quick:
        chosen.rounds, chosen.contenders = 2, ["ours", "plain"]
    if chosen.out is None:
        chosen.out = ROOT / ".turns" / "bench" / f"{datetime.now(UTC):%Y%m%d-%H%M%S}.json"
    try:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.touch()
    except OSError as exc:
        parser.error(f"--out: {exc}")
    return chosen


async def measure(bench: Bench, scenarios: Mapping[str, Scenario]) -> dict[str, Measured]:
    """Runs scenarios one after the other; prints each one's table when it has ended."""
    everything: dict[str, Measured] = {}
    for name, run in scenarios.items():
        say(name)
        began = time.monotonic()
        everything[name] = await run(bench)
        everything[name].seconds = time.monotonic() - began
        print(tables.of_scenario(name, everything[name]), end="\n\n", flush=True)
    return everything


def report(
    bench: Bench, everything: Mapping[str, Measured], missing: Mapping[str, str], shown: Mapping[str, Any]
) -> bytes:
    """Prints what all of it comes to; returns it as JSON."""
    judged, versions = targets.judge(everything), versions_of(bench.pythons)
    print(tables.of_targets(judged), tables.conditions(shown, versions, missing), sep="\n\n", flush=True)
    return orjson.dumps(
        {
            "machine": shown,
            "versions": versions,
            "not_installed": missing,
            "rounds": bench.rounds,
            "scenarios": [tables.as_json(name, measured) for name, measured in everything.items()],
            "targets": judged,
        },
        option=orjson.OPT_INDENT_2,
    )


async def _until_told(running: Coroutine[Any, Any, dict[str, Measured]]) -> dict[str, Measured]:
    """Runs to its end, or until SIGINT or SIGTERM, upon which it ends what it has started."""
    task = asyncio.ensure_future(running)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    return await task


def main() -> None:
    """Runs the bench."""
    chosen = parse(sys.argv[1:])
    scenarios = QUICK if chosen.quick else SCENARIOS
    wanted = {name: run for name, run in scenarios.items() if name in (chosen.scenarios or scenarios)}
    pythons, missing = interpreters(chosen.contenders, own=chosen.quick)
    with tempfile.TemporaryDirectory(prefix="turns-bench-") as folder, serving(Path(folder)) as servers:
        shown = machine(servers)
        if shown["load before"] > IDLE_LOAD:
            say(f"the machine is not idle (load {shown['load before']}): what is measured will be noisy")
        bench = Bench(servers, pythons, chosen.rounds)
        try:
            everything = uvloop.run(_until_told(measure(bench, wanted)))
        except asyncio.CancelledError:
            sys.exit("stopped")
        chosen.out.write_bytes(report(bench, everything, missing, shown))
    say(f"written to {chosen.out}")


if __name__ == "__main__":
    main()
