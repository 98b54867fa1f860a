"""Owns what node code uses to act on the world: `effect`, `effect_sync` and `idempotency_key`.

What holds: the call is made at least once; each key has one recorded outcome; the provider acts exactly once *if*
it honours the key (as Stripe's `Idempotency-Key` does). Outside a durable turn (a unit test, plain LangGraph) there is
nothing to derive a key from: each call then gets a fresh random key and nothing is journaled.
"""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from langgraph.errors import GraphBubbleUp
from langgraph.types import interrupt
from pydantic import BaseModel

from adapter import faultpoints, keys
from adapter.compensation import reference
from adapter.gate import RUNNING, RunningEffect
from adapter.node_threads import NODE, let_end
from adapter.store import effect_journal
from adapter.writer import FencedWriter

T = TypeVar("T")
Mode = Literal["keyed", "once"]

_IN_PROGRESS_TRIES = 60
_IN_PROGRESS_SECONDS = 0.5
_LET_END_SECONDS = 10.0


class Settlement(BaseModel):
    """A person's answer about an effect of unknown outcome.

    Attributes:
        outcome: whether it happened; "did not happen" lets it be tried again.
        result: what `effect` shall return, if it happened.
    """

    outcome: Literal["happened", "did not happen"]
    result: Any = None


@dataclass(frozen=True, slots=True)
class Journal:
    """What `effect` needs of the running attempt.

    Attributes:
        writer: the attempt's writer.
        thread_id: the thread.
        origin: the turn that keys are derived from.
        loop: the event loop that the writer runs on.
    """

    writer: FencedWriter
    thread_id: str
    origin: str
    loop: asyncio.AbstractEventLoop


JOURNAL: contextvars.ContextVar[Journal | None] = contextvars.ContextVar("turns_journal", default=None)


def idempotency_key(name: str, /, *, key: str | None = None) -> str:
    """Returns the key for an effect of the running node, for code that calls its provider itself.

    The same for every retry, killed worker, reset and resume of this visit of the node; different for another
    visit, `Send` branch, turn or thread. Asking again for the same name in the same visit gives the next key.

    Args:
        name: the effect's name, such as "charge".
        key: a business key (an order number): then the key depends on thread, `key` and name only.
    """
    journal, running = JOURNAL.get(), RUNNING.get()
    if journal is None or running is None:
        return uuid.uuid4().hex
    if key is not None:
        return keys.derive_business(journal.thread_id, key, name)
    name, occurrence = _nth(running, name)
    return keys.derive(journal.thread_id, journal.origin, running.places(), name, occurrence)


async def effect(
    name: str,
    call: Callable[..., Awaitable[T]],
    /,
    *args: Any,
    key: str | None = None,
    mode: Mode = "keyed",
    compensate: Callable[..., Any] | None = None,
    **kwargs: Any,
) -> T:
    """Acts on the world through `call`, journaled and with a derived idempotency key.

    `call` is awaited as `call(*args, idempotency_key=..., **kwargs)` on every attempt: the provider replays what it
    recorded for the key. An exception with a true attribute `in_progress` (the provider still works on an earlier
    attempt's request, HTTP 409) makes it call again with the same arguments after `retry_after` seconds.

    Args:
        name: the effect's name; part of its key.
        call: the provider's client; with mode "once" it gets no key.
        *args: passed on.
        key: a business key that makes it the same effect wherever in the thread it happens.
        mode: "once" for providers without keys: a finished effect returns its recorded result and is not called
            again. One that was started and whose outcome nobody recorded is *unknown*: the turn stops at an
            interrupt that shows it, and a person answers with a `Settlement`. An exception of `call` leaves it
            unknown, too, unless it has a true attribute `did_not_happen`.
        compensate: what undoes the effect, called as `compensate(result, idempotency_key=...)` if the turn fails after
            all or is rolled back: the last effect first, journaled, with a key of its own (none in mode "once"), again
            until it succeeds or `TURNS_COMPENSATION_ATTEMPTS` are used up. A function at the top of a module, sync or
            async: another process may have to call it. A turn whose effects were undone can be neither retried nor
            continued.
        **kwargs: passed on.

    A turn that is cancelled meanwhile waits up to ten seconds for the provider's answer, so that the journal has it.

    Raises:
        GraphInterrupt: mode "once", and an earlier attempt may or may not have acted.
        StaleAttempt: another worker took this node over; nothing was called.
        TypeError: `compensate` cannot be called by another process; nothing was called.
    """
    derived = idempotency_key(name, key=key)
    undo = None if compensate is None else reference(compensate)
    journal, running = JOURNAL.get(), RUNNING.get()
    if journal is None or running is None:
        return await _patiently(call, args, {**kwargs, **_key(mode, derived)})
    while True:
        started = await effect_journal.start(
            journal.writer, key=derived, name=name, node=running.label, mode=mode, compensate=undo
        )
        if not started.undone:
            break
        derived = keys.derive_after_compensation(derived)
    extra = _key(mode, derived)
    if mode == "once":
        if started.unknown or started.settled:
            started = await _settled(journal, started, name, running.label, derived)
        if started.finished:
            return started.result
    faultpoints.reached(faultpoints.BEFORE_EFFECT)
    calling = asyncio.ensure_future(_patiently(call, args, {**kwargs, **extra}))
    try:
        result = await asyncio.shield(calling)
    except asyncio.CancelledError:
        await _let_end(journal.writer, derived, calling)
        raise
    except GraphBubbleUp:
        raise
    except BaseException as exc:
        if mode == "keyed" or getattr(exc, "did_not_happen", False):
            await effect_journal.fail(journal.writer, key=derived, error=type(exc).__name__)
        raise
    faultpoints.reached(faultpoints.AFTER_EFFECT)
    await effect_journal.finish(journal.writer, key=derived, result=result, exact=mode == "once")
    faultpoints.reached(faultpoints.AFTER_JOURNAL)
    return result


def _key(mode: Mode, key: str) -> dict[str, str]:
    return {"idempotency_key": key} if mode == "keyed" else {}


async def _settled(
    journal: Journal, started: effect_journal.Started, name: str, node: str, key: str
) -> effect_journal.Started:
    """Asks a person what became of an effect; returns what the journal knows then.

    Asks also when it was settled before: the node runs again from its start after each answer, and LangGraph gives
    answers out in the order of the questions.
    """
    question = {
        "effect": name,
        "node": node,
        "key": key,
        "attempts": started.attempts - 1,
        "started_at": started.started_at.isoformat(),
        "question": "It was started and nobody recorded its outcome. Did it happen?",
    }
    answer: Settlement = interrupt(question, response_schema=Settlement)
    if started.settled:
        return started
    happened = answer.outcome == "happened"
    await effect_journal.settle(journal.writer, key=key, happened=happened, result=answer.result)
    return dataclasses.replace(started, finished=happened, unknown=False, settled=True, result=answer.result)


async def _let_end(writer: FencedWriter, key: str, calling: asyncio.Future[Any]) -> None:
    """Journals what comes of a call under way when its turn is cancelled: the provider was asked already."""
    await asyncio.wait({calling}, timeout=_LET_END_SECONDS)
    if not calling.done():
        calling.cancel()
    elif calling.exception() is None:
        await effect_journal.finish(writer, key=key, result=calling.result())


def effect_sync(
    name: str,
    call: Callable[..., T],
    /,
    *args: Any,
    key: str | None = None,
    mode: Mode = "keyed",
    compensate: Callable[..., Any] | None = None,
    **kwargs: Any,
) -> T:
    """As `effect`, for synchronous nodes (which LangGraph runs in a thread).

    A turn that is cancelled meanwhile waits for the call's end, however long it takes, and journals it.

    Raises:
        asyncio.CancelledError: after the effect, when the node was cancelled meanwhile.
    """

    async def in_thread(*a: Any, **kw: Any) -> T:
        return await asyncio.to_thread(call, *a, **kw)

    coro = effect(name, in_thread, *args, key=key, mode=mode, compensate=compensate, **kwargs)
    journal = JOURNAL.get()
    if journal is None:
        return asyncio.run(coro)
    context = contextvars.copy_context()
    context.run(NODE.set, None)  # the node's thread is what a cancel reaches, and it waits here
    with let_end():
        return asyncio.run_coroutine_threadsafe(_in_context(context, coro), journal.loop).result()


async def _in_context(context: contextvars.Context, coro: Any) -> Any:
    return await asyncio.get_running_loop().create_task(coro, context=context)


async def _patiently(call: Callable[..., Awaitable[T]], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    for _ in range(_IN_PROGRESS_TRIES):
        try:
            return await call(*args, **kwargs)
        except Exception as exc:
            if not getattr(exc, "in_progress", False):
                raise
            await asyncio.sleep(float(getattr(exc, "retry_after", _IN_PROGRESS_SECONDS)))
    return await call(*args, **kwargs)


def _nth(running: RunningEffect, name: str) -> tuple[str, int]:
    # A graph that the node invokes runs in this same visit: its own place keeps its effects apart.
    inner = _inner_place(running)
    full = f"{inner}/{name}" if inner else name
    occurrence = running.used.get(full, 0)
    running.used[full] = occurrence + 1
    return full, occurrence


def _inner_place(running: RunningEffect) -> str:
    from langgraph.config import get_config

    try:
        metadata = get_config().get("metadata", {})
    except RuntimeError:
        return ""
    ns = str(metadata.get("langgraph_checkpoint_ns", ""))
    own = str(running.path[-1].metadata.get("langgraph_checkpoint_ns", ""))
    if not own or ns == own or not ns.startswith(f"{own}|"):
        return ""
    nodes = [part.split(":")[0] for part in ns[len(own) + 1 :].split("|")]
    return "/".join((*nodes, str(metadata.get("langgraph_step", ""))))
