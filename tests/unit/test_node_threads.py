"""Threads of cancelled nodes: interrupted and waited for, and never the next call in the same thread."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from adapter.node_threads import NodeRun, NodeThreads, let_end, node_run


@contextlib.asynccontextmanager
async def _one_thread() -> AsyncGenerator[NodeThreads]:
    with NodeThreads(1) as threads:
        yield threads


async def _node(threads: NodeThreads, call: Callable[[], Any]) -> Any:
    async with node_run("node", set[NodeRun]()):
        return await asyncio.get_running_loop().run_in_executor(threads, call)


def _works(milliseconds: float, begun: Callable[[], object] = lambda: None) -> None:
    begun()
    until = time.perf_counter() + milliseconds / 1000
    while time.perf_counter() < until:
        pass


async def test_no_other_call_in_the_thread_is_hit() -> None:
    chance = random.Random(1)
    interrupted = 0
    async with _one_thread() as threads:
        for _ in range(200):
            milliseconds = chance.uniform(0, 2)
            node = asyncio.create_task(_node(threads, lambda ms=milliseconds: _works(ms)))
            other = asyncio.ensure_future(asyncio.get_running_loop().run_in_executor(threads, _works, 0.5))
            await asyncio.sleep(chance.uniform(0, 2) / 1000)
            node.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await node
            interrupted += node.cancelled()
            await other  # raises what hit it
    assert interrupted


async def test_a_cancel_that_comes_after_the_call_is_raised_nowhere() -> None:
    nodes = set[NodeRun]()
    async with _one_thread() as threads, node_run("node", nodes):
        (run,) = nodes
        go = threading.Event()
        called = asyncio.get_running_loop().run_in_executor(threads, go.wait, 20)
        (call,) = run.calls
        go.set()
        await called
        call.interrupt()
        await asyncio.get_running_loop().run_in_executor(threads, _works, 5)


async def test_a_cancel_that_comes_just_when_the_call_ends_is_raised_nowhere() -> None:
    nodes = set[NodeRun]()
    async with _one_thread() as threads, node_run("node", nodes):
        (run,) = nodes
        run.lock = ends = _InterruptsAtTheEnd(run)  # type: ignore[assignment]
        await asyncio.get_running_loop().run_in_executor(threads, ends.arm)
        await asyncio.get_running_loop().run_in_executor(threads, _works, 5)
        assert not ends.armed


class _InterruptsAtTheEnd:
    """A node's lock that interrupts the call that takes it on its way out."""

    def __init__(self, run: NodeRun) -> None:
        self._run, self._lock, self.armed = run, run.lock, False

    def arm(self) -> None:
        """Is what the call calls."""
        while not self._run.calls:
            time.sleep(0.001)
        self.armed = True

    def __enter__(self) -> None:
        if self.armed:
            self.armed = False
            (call,) = self._run.calls
            call.interrupt()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


async def test_a_cancelled_node_is_over_when_its_thread_is() -> None:
    begun, told = asyncio.Event(), list[str]()
    loop = asyncio.get_running_loop()

    def call() -> None:
        try:
            _works(20_000, lambda: loop.call_soon_threadsafe(begun.set))
        finally:
            time.sleep(0.2)
            told.append("cleaned up")

    async with _one_thread() as threads:
        node = asyncio.create_task(_node(threads, call))
        await begun.wait()
        for _ in range(3):
            node.cancel()  # a second one must not end the waiting
            await asyncio.sleep(0.02)
        with pytest.raises(asyncio.CancelledError):
            await node
        assert told == ["cleaned up"]


@pytest.mark.parametrize("shielded", [False, True])
async def test_a_call_that_waits_for_a_thread_does_not_begin(shielded: bool) -> None:
    loop, go, begun = asyncio.get_running_loop(), threading.Event(), list[str]()
    async with _one_thread() as threads:

        async def body() -> None:
            async with node_run("node", set[NodeRun]()):
                waits = loop.run_in_executor(threads, begun.append, "call")
                waits.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
                await (asyncio.shield(waits) if shielded else waits)

        busy = loop.run_in_executor(threads, go.wait, 20)
        node = asyncio.create_task(body())
        await asyncio.sleep(0)
        node.cancel()
        if shielded:  # asyncio does not take it back
            await asyncio.sleep(0.01)
            go.set()
        with pytest.raises(asyncio.CancelledError):
            await node
        go.set()
        await busy
    assert not begun


async def test_what_is_let_end_is_cancelled_after_it() -> None:
    begun, told = asyncio.Event(), list[str]()
    loop = asyncio.get_running_loop()

    def call() -> None:
        with let_end():
            _works(200, lambda: loop.call_soon_threadsafe(begun.set))
            told.append("ended")
        told.append("goes on")

    async with _one_thread() as threads:
        node = asyncio.create_task(_node(threads, call))
        await begun.wait()
        node.cancel()
        with pytest.raises(asyncio.CancelledError):
            await node
    assert told == ["ended"]


async def test_a_call_that_its_node_gave_up_is_left_alone() -> None:
    """As in plain LangGraph: only a node that is cancelled itself takes its threads along."""
    told = list[str]()

    def call() -> None:
        _works(100)
        told.append("ended")

    async with _one_thread() as threads:

        async def body() -> str:
            async with node_run("node", set[NodeRun]()):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.01):
                        await asyncio.get_running_loop().run_in_executor(threads, call)
                return "went on"

        assert await asyncio.create_task(body()) == "went on"
        assert not told
    assert told == ["ended"]
