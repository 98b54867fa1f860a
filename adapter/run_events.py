"""Owns what stream mode "events" shows: LangChain's events of everything that runs in a turn.

LangChain tells of each entry of the graph as of a run of its own. A turn has several, so this makes them one: ids of
graphs, and of the tasks that such a graph runs, are derived from the turn and their place; what an earlier entry has
shown of them is not shown again; a task that an entry only finds, and may not run, is not shown at all. The rest
(nodes that run, and what runs in them) belongs to one attempt and is taken back with it, like tokens
(`adapter/streamed.py`). Next: `adapter/tap.py`, which calls it on the event loop's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID, uuid5

from langgraph.constants import TAG_HIDDEN

from adapter.store.event_log import Event
from adapter.wire import dumps

NAME = "events"


class RunEvents:
    """The events of one entry of a turn's graph.

    Args:
        turn_id: the turn; the run id of the root graph.
        graph_id: its graph, which the root's events are named after.
        shown: keys of the events that earlier entries stored.
        emit: takes what is to be stored.
    """

    def __init__(
        self,
        turn_id: str,
        graph_id: str,
        *,
        shown: frozenset[str],
        emit: Callable[[Event], None],
    ) -> None:
        self._turn_id = turn_id
        self._graph_id = graph_id
        self._shown = shown
        self._emit = emit
        self._ids: dict[str, str] = {}
        self._graphs: set[str] = set()
        self._found: dict[str, Mapping[str, Any]] = {}
        self._ran: set[str] = set()
        self._subgraphs: set[str] = set()
        self._end: Event | None = None

    def take(self, event: Mapping[str, Any]) -> None:
        """Takes one of LangChain's events, in order; LangGraph's own steps are tagged as hidden, and are."""
        if TAG_HIDDEN in event["tags"]:
            return
        run_id, parents = str(event["run_id"]), event["parent_ids"]
        if not parents:
            self._root(event, run_id)
            return
        task = str(event["metadata"].get("langgraph_checkpoint_ns", ""))
        if parents[-1] in self._graphs:
            self._task(event, run_id, task)
        elif parents[-1] in self._found or parents[-1] in self._subgraphs:
            self._subgraph(event, run_id, parents[-1], task)
        else:
            self._show(event, task=task)

    def starts(self, task: str) -> None:
        """Takes note that the node of a task runs; `task` is its checkpoint namespace."""
        for run_id, found in list(self._found.items()):
            if found["metadata"].get("langgraph_checkpoint_ns") == task:
                del self._found[run_id]
                self._ran.add(run_id)
                self._show(found, task=task)

    def end(self) -> None:
        """Shows the end of the root graph, which only the turn's last entry comes to."""
        if self._end is not None:
            self._emit(self._end)

    def _root(self, event: Mapping[str, Any], run_id: str) -> None:
        self._ids[run_id] = self._turn_id
        self._graphs.add(run_id)
        event = {**event, "name": self._graph_id}
        if event["event"] == "on_chain_start":
            self._show_once(event)
        elif event["event"] == "on_chain_end":
            # Its input stands in the event of its start.
            self._end = self._told({**event, "data": {"output": event["data"]["output"]}})

    def _task(self, event: Mapping[str, Any], run_id: str, task: str) -> None:
        if event["event"] == "on_chain_start":
            self._ids[run_id] = str(uuid5(UUID(self._turn_id), task))
            self._found[run_id] = event
        elif run_id in self._subgraphs:
            self._show_once(event)
        elif run_id in self._ran:
            self._show(event, task=task)

    def _subgraph(self, event: Mapping[str, Any], run_id: str, parent: str, task: str) -> None:
        """Takes what runs in a task whose node was not started: it is a graph, and this is its run."""
        if parent in self._found:
            self._subgraphs.add(parent)
            self._show_once(self._found.pop(parent))
        if event["event"] == "on_chain_start":
            self._ids[run_id] = str(uuid5(UUID(self._turn_id), f"{task}|"))
            self._graphs.add(run_id)
        self._show_once(event)

    def _show(self, event: Mapping[str, Any], *, task: str) -> None:
        self._emit(self._told(event, task=task))

    def _show_once(self, event: Mapping[str, Any]) -> None:
        told = self._told(event)
        if told.key not in self._shown:
            self._emit(told)

    def _told(self, event: Mapping[str, Any], *, task: str | None = None) -> Event:
        run_id = self._ids.get(str(event["run_id"]), str(event["run_id"]))
        parents = [self._ids.get(parent, parent) for parent in event["parent_ids"]]
        data = dumps({**event, "run_id": run_id, "parent_ids": parents})
        key = None if task else f"{run_id}/{event['event']}"
        return Event(NAME, data, key, task=task or None)


__all__ = ["NAME", "RunEvents"]
