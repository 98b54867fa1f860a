"""Owns the stack under load: `turns dev` with several processes of each of ours, a provider, and what befalls them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import httpx
import psutil

from deploy.examples.booking.provider_process import ProviderProcess, start
from deploy.postgres import cluster_of, url_of
from tests.faults.test_local_stack import Dev, until
from tests.processes import ROOT

KINDS = ("worker", "api", "postgres", "temporal")
OURS = ("worker", "api")
PROCESSES = 2
HEARTBEAT_TIMEOUT = 3


class Load(Dev):
    """`turns dev` on the booking example."""

    def environment(self) -> dict[str, str]:
        """Returns what it is started with."""
        return super().environment() | {"TURNS_HEARTBEAT_TIMEOUT": str(HEARTBEAT_TIMEOUT)}

    @property
    def url(self) -> str:
        """Where the API answers."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def database_url(self) -> str:
        """Of the embedded PostgreSQL."""
        return url_of(cluster_of(self.folder / ".turns"))


class Soaked:
    """The stack, the provider, and how many processes were ended by kind."""

    def __init__(self, dev: Load, provider: ProviderProcess) -> None:
        self.dev = dev
        self.provider = provider
        self.ended: Counter[str] = Counter()

    def ledger(self) -> dict[str, list[dict[str, Any]]]:
        """Returns the provider's attempts and effects."""
        return httpx.get(f"{self.provider.url}/ledger", trust_env=False, timeout=60).json()

    async def kill(
        self, chosen: random.Random, every: float, rounds: int, say: Callable[[str], None]
    ) -> None:
        """Kills a process every so many seconds: in each round one of each kind, in another order each time."""
        for _ in range(rounds):
            for kind in chosen.sample(KINDS, len(KINDS)):
                await asyncio.sleep(every * chosen.uniform(0.5, 1.5))
                while not (victims := await asyncio.to_thread(self._parts, kind)):
                    await asyncio.sleep(0.1)  # it is being started again
                with contextlib.suppress(psutil.NoSuchProcess):
                    chosen.choice(victims).kill()
                    self.ended[kind] += 1
                    say(f"killed {kind}")

    async def restart(self, rounds: int, say: Callable[[str], None]) -> None:
        """Asks our processes to stop, one after the other, each once the one before it was replaced."""
        for _ in range(rounds):
            for kind in OURS:
                for victim in await asyncio.to_thread(self._parts, kind):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        victim.send_signal(signal.SIGTERM)
                        self.ended[kind] += 1
                        say(f"restarting {kind}")
                        await asyncio.to_thread(self._replaced, kind, victim)

    def _parts(self, kind: str) -> list[psutil.Process]:
        return sorted(self.dev.parts().get(kind, []), key=lambda process: process.pid)

    def _replaced(self, kind: str, victim: psutil.Process) -> None:
        until(lambda: not victim.is_running() and len(self._parts(kind)) == PROCESSES, f"another {kind}")
        self.dev.settle()


@contextlib.contextmanager
def soaked(folder: Path) -> Generator[Soaked]:
    """Yields a running stack."""
    provider = start(folder / "ledger.jsonl", "--delay-before", "0.1", "--delay-after", "0.1")
    os.environ["BOOKING_PROVIDER_URL"] = provider.url
    dev = Load(folder)
    try:
        count = str(PROCESSES)
        dev.start("--config", str(ROOT / "langgraph.json"), "--workers", count, "--api-workers", count)
        yield Soaked(dev, provider)
    finally:
        if not dev.process_ended:
            dev.end()
        provider.process.kill()
        provider.process.wait(10)
