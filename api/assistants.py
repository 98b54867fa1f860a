"""Owns the assistants: which one a name stands for, and the ones that every graph of the project has.

A graph's own assistant has an id that every server derives from the graph's name; it is made when the process starts,
and again when somebody names a graph whose assistant was deleted. Next: `api/run_config.py`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from psycopg.rows import DictRow

from adapter.errors import Conflict, Forbidden, Invalid, NotFound
from adapter.graphs import Project
from adapter.store import assistants as rows
from adapter.store import requests
from adapter.store.assistants import Wanted
from adapter.store.only import Only
from adapter.store.pool import Pool
from api.run_config import refuse_both
from api.schemas.assistants import AssistantCount, AssistantCreate, AssistantPatch

# uuid5 of the graph's name below this one: clients compute the same.
_NAMESPACE = uuid.UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")


def assistant_id_of(graph_id: str) -> str:
    """Returns the id of a graph's assistant."""
    return str(uuid.uuid5(_NAMESPACE, graph_id))


class Assistants:
    """The assistants of a project, found by id or by graph name.

    Args:
        project: the graphs.
        pool: PostgreSQL.
    """

    def __init__(self, project: Project, pool: Pool) -> None:
        self._pool = pool
        self._graphs = project.graph_ids
        self._system = {graph_id: assistant_id_of(graph_id) for graph_id in self._graphs}
        # Graphs' own, as they were read last: most runs are of those.
        self._read: dict[str, DictRow] = {}

    async def ensure_system(self) -> None:
        """Makes the assistant of each graph of the project, unless it exists."""
        await rows.ensure_system(self._pool, self._system)

    # ------------------------------------------------------------ find

    def forget(self, assistant_id: str) -> None:
        """Has an assistant read again; another process, or this one, has changed it."""
        self._read.pop(assistant_id, None)

    async def for_run(self, name: str) -> DictRow:
        """Returns the assistant that a run's body names; a graph's own may have been changed since it was read.

        Raises:
            NotFound: no assistant has this id.
            Invalid: it is neither an id nor a graph's name.
        """
        assistant_id = self._id(name)
        if assistant_id is None:
            raise Invalid(
                f"Invalid assistant: '{name}'. Must be either:\n- A valid assistant UUID, or\n"
                f"- One of the registered graphs: {', '.join(self._graphs)}"
            )
        found = self._read.get(assistant_id) or await self._get(assistant_id)
        if found is None:
            raise NotFound("Thread or assistant not found.")
        if assistant_id in self._system.values():
            self._read[assistant_id] = found
        return found

    async def in_path(self, name: str) -> DictRow:
        """Returns the assistant that a path names.

        Raises:
            NotFound: no assistant has this id.
            Invalid: it is neither an id nor a graph's name.
        """
        found = await self._get(self.id_in_path(name))
        if found is None:
            raise NotFound("Not Found")
        return found

    def id_in_path(self, name: str) -> str:
        """Returns the id of the assistant that a path names, whether it exists or not.

        Raises:
            Invalid: it is neither an id nor a graph's name.
        """
        assistant_id = self._id(name)
        if assistant_id is None:
            raise Invalid("Invalid assistant ID: must be a UUID")
        return assistant_id

    def check_graph(self, graph_id: str) -> None:
        """Refuses a graph that the project does not have.

        Raises:
            NotFound: it does not.
        """
        if graph_id not in self._system:
            raise NotFound(f"Graph '{graph_id}' not found. Expected one of: {self._graphs}")

    def wanted(self, body: AssistantCount, only: Only) -> Wanted:
        """Returns what a search is for, among those that whoever asks may see.

        Raises:
            NotFound: it is for a graph that the project does not have.
        """
        if body.graph_id is not None:
            self.check_graph(body.graph_id)
        return Wanted(self._graphs, body.metadata, body.graph_id, body.name, only)

    async def _get(self, assistant_id: str) -> DictRow | None:
        found = await rows.get(self._pool, assistant_id)
        if found is None and assistant_id in self._system.values():
            await self.ensure_system()
            found = await rows.get(self._pool, assistant_id)
        return found

    def _id(self, name: str) -> str | None:
        if name in self._system:
            return self._system[name]
        try:
            return str(uuid.UUID(name))
        except ValueError:
            return None

    # ------------------------------------------------------------ change

    async def create(self, body: AssistantCreate, only: Only) -> DictRow:
        """Creates an assistant; an existing one is returned, if asked for, only to who may see it.

        Raises:
            NotFound: the project has no such graph.
            Conflict: there is one with this id.
            Invalid: the id is not a UUID.
            BothGiven: `context` and `config.configurable` have something in them.
        """
        self.check_graph(body.graph_id)
        assistant_id = requests.new_id() if body.assistant_id is None else _uuid(body.assistant_id)
        config = body.given_config() or {}
        refuse_both(config, body.context or {})
        if assistant_id in self._system.values():
            await self.ensure_system()
        made = await rows.create(
            self._pool,
            assistant_id,
            graph_id=body.graph_id,
            name=body.name,
            description=body.description,
            config=config,
            context=body.context or {},
            metadata=body.metadata,
        )
        if made is not None:
            return made
        existing = await rows.get(self._pool, assistant_id) if body.if_exists == "do_nothing" else None
        if existing is None or not only.admits(existing["metadata"]):
            raise Conflict(f"Assistant {assistant_id} already exists")
        return existing

    async def update(self, name: str, body: AssistantPatch, only: Only) -> DictRow:
        """Makes a new version of an assistant; `context` replaces `config.configurable`, and the other way round.

        Raises:
            NotFound: there is no such assistant, or graph, or whoever asks may not see the assistant.
            Forbidden: they could not see it any more afterwards.
            Conflict: it is a graph's own assistant, and the body names another graph.
            BothGiven: `context` and `config.configurable` have something in them.
        """
        before = await self.in_path(name)
        if body.graph_id is not None:
            self.check_graph(body.graph_id)
            if before["system"] and body.graph_id != before["graph_id"]:
                raise Conflict(
                    f"Assistant {before['assistant_id']} stands for the graph '{before['graph_id']}'; "
                    "create another assistant for another graph"
                )
        config, context = body.given_config(), body.context
        refuse_both(config or {}, context or {})
        if context is not None and config is None:
            kept: Mapping[str, Any] = before["config"]
            config = {key: value for key, value in kept.items() if key != "configurable"}
        elif config is not None and config.get("configurable") and context is None:
            context = {}
        changed = await rows.update(
            self._pool,
            str(before["assistant_id"]),
            graph_id=body.graph_id,
            name=body.name,
            description=body.description,
            config=config,
            context=context,
            metadata=body.metadata,
            only=only,
        )
        if changed is not None:
            return changed
        now = await rows.get(self._pool, str(before["assistant_id"]))
        if now is not None and only.admits(now["metadata"]):
            raise Forbidden("Forbidden")
        raise NotFound("Not Found")


def _uuid(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise Invalid("Invalid assistant ID: must be a UUID") from None
