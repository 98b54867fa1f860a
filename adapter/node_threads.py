"""Owns the operating-system threads of synchronous nodes, so that a node that was cancelled has stopped.

LangGraph and LangChain run synchronous nodes, tools and models in the event loop's default executor. asyncio forgets
such a call when its task is cancelled, and the call goes on. `NodeThreads` is that executor: it knows which node a
call belongs to (by the context that it was made in), raises `asyncio.CancelledError` inside the thread when the node
is cancelled, and the node is not over before its threads are.

The exception arrives at the thread's next bytecode: a call into C (`time.sleep`, a socket, a lock) ends first. A
thread that node code starts by itself, or that runs in an executor of its own, is not reached.
"""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any, ParamSpec, TypeVar

from adapter.cancelling import being_cancelled, outlast

P = ParamSpec("P")
T = TypeVar("T")

_set_async_exc = ctypes.pythonapi.PyThreadState_SetAsyncExc
_set_async_exc.argtypes = (ctypes.c_ulong, ctypes.py_object)
_set_async_exc.restype = ctypes.c_int


class NodeRun:
    """One node that runs, and its calls in threads.

    Attributes:
        label: the node's place as a person reads it.
        ended: set when the node is over, its threads included if it was cancelled.
    """

    def __init__(self, label: str) -> None:
        self.label = label
        self.ended = asyncio.Event()
        # Held for moments, by the event loop and by the threads: whoever raises in a thread must know that the
        # thread still runs this node's call.
        self.lock = threading.Lock()
        self.calls: set[_Call] = set()

    async def stop(self) -> None:
        """Raises in each thread of the node, and waits until all of them have ended."""
        while True:
            with self.lock:
                calls = tuple(self.calls)
                for call in calls:
                    call.interrupt()
            if not calls:
                return
            await outlast(*(asyncio.wrap_future(call.future) for call in calls))


# The node whose code runs; None where its cancel does not reach.
NODE: contextvars.ContextVar[NodeRun | None] = contextvars.ContextVar("turns_node", default=None)


@asynccontextmanager
async def node_run(label: str, running: set[NodeRun]) -> AsyncGenerator[None]:
    """Makes what the body calls in threads the node's; leaves a cancelled node when its threads have ended.

    Args:
        label: the node's place.
        running: where it stands among its attempt's running nodes meanwhile.
    """
    run = NodeRun(label)
    running.add(run)
    token = NODE.set(run)
    try:
        yield
    finally:
        NODE.reset(token)
        if being_cancelled():
            await run.stop()
        running.discard(run)
        run.ended.set()


class NodeThreads(ThreadPoolExecutor):
    """A default executor whose calls belong to the node in whose context they are submitted."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Runs a call in a thread of the pool."""
        run = NODE.get()
        if run is None:
            return super().submit(fn, *args, **kwargs)
        call = _Call(run)
        call.future = future = super().submit(call.run, fn, *args, **kwargs)
        with run.lock:
            run.calls.add(call)
        future.add_done_callback(call.forget)
        return future


class _Call:
    """One call of a node in a thread. Its state is read and changed under the node's lock only."""

    future: Future[Any]

    def __init__(self, node: NodeRun) -> None:
        self._node = node
        self._thread: int | None = None
        self._shields = 0
        self._asked = False
        self._raised = False

    def run(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            self._enter()
            return fn(*args, **kwargs)
        finally:
            self._leave()

    def forget(self, _: Future[Any]) -> None:
        with self._node.lock:
            self._node.calls.discard(self)

    def interrupt(self) -> None:
        """Raises in the thread, once; under the node's lock."""
        self._asked = True
        if self._thread is not None and not self._shields and not self._raised:
            self._raised = True
            _set_async_exc(self._thread, asyncio.CancelledError)

    @contextmanager
    def shielded(self) -> Generator[None]:
        with self._node.lock:
            self._shields += 1
        try:
            yield
        finally:
            with self._node.lock:
                self._shields -= 1
                due = self._asked and not self._raised and not self._shields
                self._raised = self._raised or due
            if due:
                raise asyncio.CancelledError

    def _enter(self) -> None:
        _CURRENT.call = self
        with self._node.lock:
            self._thread = threading.get_ident()
            asked = self._asked
        if asked:
            raise asyncio.CancelledError

    def _leave(self) -> None:
        while True:
            try:
                with self._node.lock:
                    self._thread = None  # nobody raises from here on
                    _set_async_exc(
                        threading.get_ident(), ctypes.py_object()
                    )  # nor is one left to arrive later
                _CURRENT.call = None
            except asyncio.CancelledError:
                continue  # it arrived while this was on its way out: the call has ended anyway
            return


class _Current(threading.local):
    call: _Call | None = None


_CURRENT = _Current()


@contextmanager
def let_end() -> Generator[None]:
    """Keeps a cancel from being raised in this thread before the body has ended; it is raised then.

    Raises:
        asyncio.CancelledError: after the body, when the node was cancelled meanwhile.
    """
    call = _CURRENT.call
    if call is None:
        yield
        return
    with call.shielded():
        yield
