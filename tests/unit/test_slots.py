"""Slots are given out once each, waited for, and come back from any thread."""

from __future__ import annotations

import asyncio
from typing import Any

from activities.slots import Slots

CONTEXT: Any = None


async def test_a_slot_is_waited_for_until_another_thread_gives_one_back() -> None:
    slots = Slots(2)
    taken = [await slots.reserve_slot(CONTEXT), slots.try_reserve_slot(CONTEXT)]
    assert None not in taken
    assert slots.try_reserve_slot(CONTEXT) is None

    waiting = [asyncio.create_task(slots.reserve_slot(CONTEXT)) for _ in range(2)]
    await asyncio.to_thread(slots.release_slot, CONTEXT)
    done, pending = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert (len(done), len(pending)) == (1, 1)

    await asyncio.to_thread(slots.release_slot, CONTEXT)
    await asyncio.wait(pending)
    assert slots.try_reserve_slot(CONTEXT) is None


async def test_one_that_stops_waiting_takes_none_along() -> None:
    slots = Slots(1)
    await slots.reserve_slot(CONTEXT)
    waiting = asyncio.create_task(slots.reserve_slot(CONTEXT))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    slots.release_slot(CONTEXT)
    assert slots.try_reserve_slot(CONTEXT) is not None
