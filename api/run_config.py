"""Owns what a run is configured with: what its request says, over what its assistant says.

`context` and `config.configurable` stand for each other, as clients of both ages expect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import StateGraph
from langgraph.pregel import Pregel
from psycopg.rows import DictRow

from adapter.errors import PublicError
from adapter.graphs import Project
from adapter.user import without_user


class BothGiven(PublicError):
    """The request says the same thing in two ways."""


def refuse_both(config: Mapping[str, Any], context: Mapping[str, Any]) -> None:
    """Refuses `configurable` and `context` together.

    Raises:
        BothGiven: both have something in them.
    """
    if context and config.get("configurable"):
        raise BothGiven(
            "Cannot specify both configurable and context. Prefer setting context alone, which replaces it."
        )


async def with_context(project: Project, graph_id: str, request: dict[str, Any]) -> dict[str, Any]:
    """Returns a run's request in which `context` and `config.configurable` stand for each other.

    Raises:
        BothGiven: both have something in them.
    """
    config: Mapping[str, Any] = request.get("config") or {}
    context: Mapping[str, Any] = request.get("context") or {}
    refuse_both(config, context)
    configurable: Mapping[str, Any] = config.get("configurable") or {}
    if context:
        return {**request, "config": {**config, "configurable": dict(context)}}
    if configurable:
        made = await _fitting(project, graph_id, configurable)
        return {**request, "context": made} if made else request
    return request


def without_claims(request: dict[str, Any]) -> dict[str, Any]:
    """Returns a run's request without what a client says about who it is."""
    config: Mapping[str, Any] = request.get("config") or {}
    configurable = _inner(config, "configurable")
    if not configurable:
        return request
    return {**request, "config": {**config, "configurable": without_user(configurable)}}


async def with_assistant(project: Project, assistant: DictRow, request: dict[str, Any]) -> dict[str, Any]:
    """Returns a run's request with what its assistant adds.

    The request wins key by key in `config`, and within it in `configurable` and `metadata`, and in `context`.
    """
    config: Mapping[str, Any] = assistant["config"]
    context: Mapping[str, Any] = assistant["context"]
    if not config and not context:
        return request
    said: Mapping[str, Any] = request.get("config") or {}
    own: Mapping[str, Any] = config.get("configurable") or {}
    merged: dict[str, Any] = {
        **config,
        **said,
        "configurable": {**_placeless(without_user({**own, **context})), **_inner(said, "configurable")},
        "metadata": {**_inner(config, "metadata"), **_inner(said, "metadata")},
    }
    if not merged["metadata"]:
        del merged["metadata"]
    made = {
        **await _fitting(project, assistant["graph_id"], own),
        **context,
        **cast("Mapping[str, Any]", request.get("context") or {}),
    }
    return {**request, "config": merged, **({"context": made} if made else {})}


def assistant_config(assistant: DictRow) -> RunnableConfig:
    """Returns the config that a graph's factory is called with to tell about an assistant's graph."""
    config: Mapping[str, Any] = assistant["config"]
    context: Mapping[str, Any] = assistant["context"]
    merged = {**config, "configurable": without_user({**_inner(config, "configurable"), **context})}
    return cast("RunnableConfig", merged)


def thread_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what the thread remembers of a run's config: all but the place it started from."""
    return {**config, "configurable": _placeless(_inner(config, "configurable"))}


def _placeless(configurable: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves out where in a thread's history a run starts: that is said by one request, for itself."""
    place = ("checkpoint_id", "checkpoint_ns", "checkpoint_map", "thread_id")
    return {key: value for key, value in configurable.items() if key not in place}


async def _fitting(project: Project, graph_id: str, configurable: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what of it the graph's context has a field for; nothing for a factory, which would have to be called."""
    if not configurable or not isinstance(project.exports.get(graph_id), (Pregel, StateGraph)):
        return {}
    async with project.plain(graph_id) as graph:
        try:
            schema = graph.get_context_jsonschema() or {}
        except ValueError:  # a context of a kind that has no schema
            return {}
    fields = schema.get("properties", {})
    return {name: value for name, value in configurable.items() if name in fields}


def _inner(config: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", config.get(key) or {})
