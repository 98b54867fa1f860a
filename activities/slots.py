"""Owns how many tasks a worker takes: none while a node keeps its event loop.

Temporal's own supplier of slots asks the server for work from threads that know nothing of Python. A worker whose event
loop is blocked would go on taking activities, the retries of the blocked one first, and let each run into its
heartbeat timeout. This one gives its slots out on the event loop, so that only what was asked for before is taken.
"""

from __future__ import annotations

import asyncio
import threading

from temporalio.worker import (
    CustomSlotSupplier,
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
)


class Slots(CustomSlotSupplier):
    """A fixed number of slots, given out on the event loop that this is made on."""

    def __init__(self, number: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._lock = (
            threading.Lock()
        )  # Temporal's threads give slots back, and take them for eager activities
        self._free = number
        self._given_back = asyncio.Event()

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:
        """Waits for a free slot."""
        while (permit := self.try_reserve_slot(ctx)) is None:
            self._given_back.clear()
            await self._given_back.wait()
        return permit

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:
        """Takes a slot if one is free."""
        with self._lock:
            if self._free == 0:
                return None
            self._free -= 1
            return SlotPermit()

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        """Changes nothing: it was taken when it was reserved."""

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        """Gives a slot back."""
        with self._lock:
            self._free += 1
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._given_back.set)
