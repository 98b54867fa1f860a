"""Owns what is told about a graph without running it: its drawing and its schemas."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, cast

from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel import Pregel
from pydantic import TypeAdapter, create_model
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticOmit

from adapter._pregel import AnyGraph

log = logging.getLogger("turns.api")


async def drawing(graph: AnyGraph, *, xray: bool | int) -> dict[str, Any]:
    """Returns nodes and edges, as viewers of graphs read them."""
    drawn = (await graph.aget_graph(xray=xray)).to_json()
    nodes: list[dict[str, Any]] = []
    for node in drawn["nodes"]:
        shown: dict[str, Any] = {"id": node["id"]}
        if node["id"] != "__end__":
            shown.update({"type": "runnable", "data": {"name": node["id"]}})
        nodes.append(shown)
    return {"nodes": nodes, "edges": drawn["edges"]}


def schemas(graph: AnyGraph) -> dict[str, Any]:
    """Returns the graph's JSON Schemas; null where its types have none."""
    context = _schema(graph.get_context_jsonschema)
    return {
        "input_schema": _schema(graph.get_input_jsonschema),
        "output_schema": _schema(graph.get_output_jsonschema),
        "state_schema": _schema(lambda: _state_schema(graph)),
        "config_schema": context or {},
        "context_schema": context,
    }


async def subgraph_schemas(graph: AnyGraph, namespace: str | None, *, recurse: bool) -> dict[str, Any]:
    """Returns namespace to the schemas of the subgraph there; nothing for a namespace that has none."""
    found = cast("Any", graph).aget_subgraphs(namespace=namespace, recurse=recurse)
    return {
        name: schemas(cast("AnyGraph", subgraph))
        async for name, subgraph in found
        if isinstance(subgraph, Pregel)
    }


def _state_schema(graph: AnyGraph) -> Mapping[str, Any]:
    if isinstance(graph, CompiledStateGraph):
        return TypeAdapter[Any](cast("Any", graph).builder.state_schema).json_schema()
    channels = cast("Mapping[str, Any]", graph.channels)
    fields: dict[str, Any] = {
        name: (getattr(channels[name], "ValueType", Any), None) for name in graph.stream_channels_list
    }
    return create_model("State", **fields).model_json_schema()


def _schema(make: Callable[[], Mapping[str, Any] | None]) -> Mapping[str, Any] | None:
    """Returns what `make` makes; None when a type in it has no JSON Schema, which is no reason to fail."""
    try:
        return make()
    except (PydanticUserError, PydanticOmit, TypeError, ValueError, AttributeError, NameError) as exc:
        log.info("a schema cannot be shown: %s: %s", type(exc).__name__, exc)
        return None
