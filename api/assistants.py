"""Owns the assistants: one per configured graph, with the id that every server derives from the graph's name."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from adapter.errors import Invalid, NotFound
from adapter.graphs import Project

# uuid5 of the graph's name below this one: clients compute the same.
_NAMESPACE = uuid.UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")


def assistant_id_of(graph_id: str) -> str:
    """Returns the id of a graph's assistant."""
    return str(uuid.uuid5(_NAMESPACE, graph_id))


@dataclass(frozen=True, slots=True)
class Assistant:
    """A graph under the name clients know it by."""

    assistant_id: str
    graph_id: str
    created_at: datetime

    def to_json(self) -> dict[str, Any]:
        """Returns it as clients see it."""
        return {
            "assistant_id": self.assistant_id,
            "graph_id": self.graph_id,
            "config": {},
            "context": {},
            "metadata": dict(METADATA),
            "name": self.graph_id,
            "created_at": self.created_at.isoformat(timespec="microseconds"),
            "updated_at": self.created_at.isoformat(timespec="microseconds"),
            "version": 1,
            "description": None,
        }


METADATA: Mapping[str, Any] = {"created_by": "system"}


class Assistants:
    """The assistants of a project, found by id or by graph name."""

    def __init__(self, project: Project) -> None:
        try:
            changed = project.path.stat().st_mtime
        except OSError:
            changed = datetime.now(UTC).timestamp()
        # The same in every process that serves this project file.
        created_at = datetime.fromtimestamp(int(changed), UTC)
        self._by_graph = {
            graph_id: Assistant(assistant_id_of(graph_id), graph_id, created_at)
            for graph_id in project.graph_ids
        }
        self._by_id = {a.assistant_id: a for a in self._by_graph.values()}

    def all(self) -> list[Assistant]:
        """Returns every assistant, in the project file's order."""
        return list(self._by_graph.values())

    def for_run(self, name: str) -> Assistant:
        """Returns the assistant that a run's body names.

        Raises:
            NotFound: no assistant has this id.
            Invalid: it is neither an id nor a graph's name.
        """
        found = self._find(name)
        if found is not None:
            return found
        if _is_uuid(name):
            raise NotFound("Thread or assistant not found.")
        raise Invalid(
            f"Invalid assistant: '{name}'. Must be either:\n- A valid assistant UUID, or\n"
            f"- One of the registered graphs: {', '.join(self._by_graph)}"
        )

    def in_path(self, name: str) -> Assistant:
        """Returns the assistant that a path names.

        Raises:
            NotFound: no assistant has this id.
            Invalid: it is neither an id nor a graph's name.
        """
        found = self._find(name)
        if found is not None:
            return found
        if _is_uuid(name):
            raise NotFound("Not Found")
        raise Invalid("Invalid assistant ID: must be a UUID")

    def of_graph(self, graph_id: str) -> Assistant:
        """Returns a graph's assistant.

        Raises:
            NotFound: the project has no such graph.
        """
        if graph_id not in self._by_graph:
            raise NotFound(f"Graph '{graph_id}' not found. Expected one of: {list(self._by_graph)}")
        return self._by_graph[graph_id]

    def _find(self, name: str) -> Assistant | None:
        if name in self._by_graph:
            return self._by_graph[name]
        return self._by_id.get(str(uuid.UUID(name))) if _is_uuid(name) else None


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True
