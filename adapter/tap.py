"""Owns the filter between LangGraph's streams and a turn's event log.

A turn is run by several activities, each of which enters the graph again; LangGraph then shows again what it has
shown before. The tap drops exactly that, so that the events of a turn equal those of one plain `astream`
(order inside a superstep aside). It is called synchronously by every loop of the run, so it knows which events
belong to one tick. Next: `adapter/writer.py` stores what is left.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from langchain_core.messages import BaseMessage, BaseMessageChunk, message_chunk_to_message
from langgraph.types import Interrupt

from adapter._pregel import INTERRUPT_KEY
from adapter.gate import Gate
from adapter.run_events import RunEvents
from adapter.saver import FencedSaver
from adapter.store.event_log import Event, Need
from adapter.wire import debug_json, dumps
from adapter.writer import FencedWriter

Namespace = tuple[str, ...]
Chunk = tuple[Namespace, str, Any]

# What the tap itself needs to see, whether or not the client asked for it.
OWN_MODES = frozenset({"updates", "tasks", "checkpoints"})


@dataclass(frozen=True, slots=True)
class Asked:
    """What the request wants to see.

    Attributes:
        modes: names of stream modes as clients write them.
        subgraphs: whether events of subgraphs are wanted.
    """

    modes: frozenset[str]
    subgraphs: bool

    @property
    def loop_modes(self) -> set[str]:
        """LangGraph's modes that its loops shall emit."""
        return (set(self.modes) & {"values", "debug"}) | OWN_MODES

    @property
    def messages(self) -> bool:
        """Whether tokens are wanted, in either form."""
        return not self.modes.isdisjoint({"messages", "messages-tuple"})

    @property
    def events(self) -> bool:
        """Whether LangChain's own events are wanted."""
        return "events" in self.modes


@dataclass(slots=True)
class _Loop:
    """One graph of the run, as its events tell.

    `opening`: before the event of the checkpoint it loaded; `first tick`: in the same synchronous tick as that;
    `open`: beyond. Only a loop that was entered before in this turn has something to drop. `tasks`: those of its
    superstep that have no result yet.
    """

    entered_before: bool
    stage: Literal["opening", "first tick", "open"] = "opening"
    cached_left: int = 0
    tasks: set[str] = field(default_factory=set[str])
    dropped: object = None
    waiting: list[Event] = field(default_factory=list[Event])


class Tap:
    """The tap of one activity.

    Args:
        asked: what the request wants.
        first: whether this is the turn's first entry of the root graph.
        shown: (event, key) pairs that an earlier attempt of the first entry stored.
        run_events: what takes LangChain's own events, if they are asked for.
    """

    def __init__(
        self,
        writer: FencedWriter,
        saver: FencedSaver,
        gate: Gate,
        asked: Asked,
        *,
        first: bool,
        shown: frozenset[tuple[str, str | None]] = frozenset(),
        run_events: RunEvents | None = None,
    ) -> None:
        self._writer = writer
        self._saver = saver
        self._gate = gate
        self._asked = asked
        self._first = first
        self._shown = shown
        self.run_events = run_events
        self._loops: dict[Namespace, _Loop] = {}
        self._partial: dict[str, BaseMessageChunk] = {}
        self._announced: set[str] = set()
        self._beyond = False
        self._event_loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self.stopped_at_interrupt = False
        self._on_breakpoint = gate.on_breakpoint
        self._interrupts: dict[str, tuple[int, Sequence[Any]]] = {}

    def __call__(self, chunk: Chunk) -> None:
        """Takes one event of a loop or a model; from any thread."""
        if threading.get_ident() == self._thread:
            self._take(chunk)
        else:
            self._event_loop.call_soon_threadsafe(self._take, chunk)

    def custom(self, task: str, payload: Any) -> None:
        """Takes what a node wrote with its stream writer; `task` is its checkpoint namespace."""
        self((tuple(task.split("|")), "custom", payload))

    def alone(self, ns: str, task_id: str) -> bool:
        """Whether a task is the only one that the graph at a checkpoint namespace waits for."""
        loop = self._loops.get(tuple(ns.split("|")) if ns else ())
        return loop is not None and loop.tasks == {task_id}

    def questions(self) -> dict[str, Any]:
        """Returns `{task id: [{"id", "value"}]}`, each interrupt under the deepest task that raised it."""
        deepest: dict[str, tuple[int, str]] = {}
        for task_id, (depth, raised) in self._interrupts.items():
            for interrupt in raised:
                if depth >= deepest.get(interrupt["id"], (-1, ""))[0]:
                    deepest[interrupt["id"]] = (depth, task_id)
        found: dict[str, Any] = {}
        for task_id, (_, raised) in self._interrupts.items():
            mine = [{"id": i["id"], "value": i["value"]} for i in raised if deepest[i["id"]][1] == task_id]
            if mine:
                found[task_id] = mine
        return found

    # ------------------------------------------------------------ filter

    def _take(self, chunk: Chunk) -> None:
        ns, mode, payload = chunk
        if mode == "messages":
            self._message(ns, payload)
        elif mode == "events":
            if self.run_events is not None:
                self.run_events.take(payload)
        elif mode == "custom":
            self._emit(ns[:-1], "custom", payload, task="|".join(ns) or None)
        else:
            self._loop_event(ns, mode, payload)

    def _loop_event(self, ns: Namespace, mode: str, payload: Any) -> None:
        loop = self._loops.get(ns)
        if loop is None:
            loop = self._loops[ns] = self._open(ns)
        if mode == "debug":
            # The wrapped form of a task or checkpoint event, which LangGraph emits right after it.
            if payload["payload"] is not loop.dropped:
                self._emit(ns, "debug", debug_json(payload))
            return
        loop.dropped = None
        if mode == "updates":
            self._note_interrupt(ns, payload)
        elif mode == "tasks":
            if "result" not in payload:
                loop.tasks.add(payload["id"])
            elif not payload["error"]:
                # In its place its error handler may run, which LangGraph does not tell of.
                loop.tasks.discard(payload["id"])
            if payload.get("interrupts"):
                self._interrupts[payload["id"]] = (len(ns), payload["interrupts"])
        elif mode == "checkpoints":
            loop.tasks.clear()  # those of the superstep that it ends; cached ones have no result
        if self._seen_before(ns, loop, mode, payload):
            loop.dropped = payload
            self._advance(ns, loop, mode, payload)
            return
        self._advance(ns, loop, mode, payload)
        event = self._emit(ns, mode, payload, key=_key(mode, payload))
        self._tie(ns, loop, mode, payload, event)

    def _open(self, ns: Namespace) -> _Loop:
        name = "|".join(ns)
        if ns:
            before = self._gate.entered_before.get(name, False)
            # The first entry of a turn may go on where an earlier turn stopped: that is shown once.
            before = before and (not self._first or self._was_shown(name))
        else:
            before = not self._first or self._was_shown("")
        return _Loop(before, cached_left=self._saver.put_back(name))

    def _was_shown(self, ns: str) -> bool:
        """Whether an earlier attempt of the turn's first entry has shown this loop's opening."""
        suffix = f"|{ns}" if ns else ""
        return any(
            event in (f"values{suffix}", f"tasks{suffix}", f"checkpoints{suffix}") for event, _ in self._shown
        )

    def _advance(self, ns: Namespace, loop: _Loop, mode: str, payload: Any) -> None:
        if mode != "checkpoints" or loop.stage == "open":
            return
        if loop.stage == "opening" and self._is_head(ns, payload):
            loop.stage = "first tick"
            self._event_loop.call_soon(self._end_tick, loop)
        else:
            loop.stage = "open"

    @staticmethod
    def _end_tick(loop: _Loop) -> None:
        if loop.stage == "first tick":
            loop.stage = "open"

    def _is_head(self, ns: Namespace, payload: Mapping[str, Any]) -> bool:
        head = self._saver.head("|".join(ns))
        return (
            head is not None and payload["config"]["configurable"].get("checkpoint_id") == head.checkpoint_id
        )

    def _seen_before(self, ns: Namespace, loop: _Loop, mode: str, payload: Any) -> bool:
        if self._raised_again(ns, mode, payload) or _cut_off(mode, payload):
            return True
        if not ns and mode == "checkpoints":
            self._beyond = payload["metadata"]["step"] + 1 > self._gate.stop
        if not ns and mode == "tasks" and self._beyond and "result" not in payload:
            return True  # tasks that the turn's budget does not allow any more
        if not loop.entered_before or loop.stage == "open":
            return False
        if mode == "values":
            return loop.stage == "opening"
        if mode == "checkpoints":
            return self._is_head(ns, payload)
        if mode == "tasks":
            return loop.stage == "first tick" and "result" not in payload
        if mode == "updates" and "__metadata__" in payload and loop.cached_left > 0:
            loop.cached_left -= 1
            return True
        return False

    def _raised_again(self, ns: Namespace, mode: str, payload: Any) -> bool:
        """Whether this tells of an interrupt that a held task raised again."""
        if mode == "tasks":
            return "result" in payload and payload["id"] in self._gate.held_again
        if mode not in ("updates", "values") or not isinstance(payload, Mapping):
            return False
        interrupts = cast("Sequence[Interrupt[Any]] | None", payload.get(INTERRUPT_KEY))
        name = "|".join(ns)
        return bool(interrupts) and all((name, i.id) in self._gate.raised_again for i in interrupts or ())

    def _note_interrupt(self, ns: Namespace, payload: Any) -> None:
        if not ns and isinstance(payload, Mapping) and INTERRUPT_KEY in payload:
            self.stopped_at_interrupt = True
            if not payload[INTERRUPT_KEY]:
                # Queued at once, so that it is stored together with the checkpoint before the breakpoint.
                noting = asyncio.ensure_future(self._on_breakpoint(""))
                noting.add_done_callback(lambda done: done.cancelled() or done.exception())

    # ------------------------------------------------------------ order of storing

    def _tie(self, ns: Namespace, loop: _Loop, mode: str, payload: Any, event: Event | None) -> None:
        """Ties events to the write they tell of (I8).

        LangGraph emits a superstep's `values` just before the `checkpoints` event that names its checkpoint, and
        a task's `updates` just before the `tasks` event that names the task.
        """
        if not self._saver.serves("|".join(ns)):
            return  # nothing of this graph is stored
        if event is not None and mode in ("values", "updates"):
            loop.waiting.append(event)
        need: Need | None = None
        if mode == "checkpoints":
            name, checkpoint_id = "|".join(ns), payload["config"]["configurable"]["checkpoint_id"]
            if not self._is_head(ns, payload):
                need = ("checkpoint", name, checkpoint_id)
        elif mode == "tasks" and "result" in payload:
            need = ("task", payload["id"])
        else:
            return
        for waiting in (*loop.waiting, *((event,) if event is not None else ())):
            waiting.need = need
        loop.waiting.clear()

    # ------------------------------------------------------------ wire form

    def _emit(
        self, ns: Namespace, mode: str, payload: Any, *, key: str | None = None, task: str | None = None
    ) -> Event | None:
        if mode not in self._asked.modes or (ns and not self._asked.subgraphs):
            return None
        event = Event("|".join((mode, *ns)), dumps(payload), key, task=task)
        self._writer.emit(event)
        return event

    def _message(self, ns: Namespace, payload: tuple[BaseMessage, Mapping[str, Any]]) -> None:
        message, metadata = payload
        task = cast("str | None", metadata.get("langgraph_checkpoint_ns"))
        if "messages-tuple" in self._asked.modes:
            name = "|".join(("messages", *ns)) if self._asked.subgraphs else "messages"
            self._writer.emit(Event(name, dumps([message, metadata]), message.id, task=task))
        if "messages" in self._asked.modes:
            for name, data in self._accumulated(message, metadata):
                self._writer.emit(Event(name, dumps(data), message.id or "", task=task))

    def _accumulated(
        self, message: BaseMessage, metadata: Mapping[str, Any]
    ) -> Generator[tuple[str, dict[str, Any] | list[BaseMessage]]]:
        """Yields what mode "messages" shows: the metadata once a message, then the message as far as it is known."""
        message_id = message.id or ""
        if message_id not in self._announced:
            self._announced.add(message_id)
            yield "messages/metadata", {message_id: {"metadata": metadata}}
        if not isinstance(message, BaseMessageChunk):
            yield "messages/complete", [message]
            return
        known = self._partial.get(message_id)
        whole = self._partial[message_id] = message if known is None else known + message
        yield "messages/partial", [message_chunk_to_message(whole)]


def _cut_off(mode: str, payload: Any) -> bool:
    """Whether this tells of a task that was cancelled: it has no result, and may have one in the next attempt."""
    return mode == "tasks" and isinstance(payload.get("error"), asyncio.CancelledError)


def _key(mode: str, payload: Any) -> str | None:
    if mode == "tasks":
        return payload["id"]
    if mode == "checkpoints":
        return payload["config"]["configurable"].get("checkpoint_id")
    return None
