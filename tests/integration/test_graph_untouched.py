"""The user's graph is copied, never changed (I10)."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from adapter.gate import gated
from tests.graphs.shapes_failures import node_with_a_retry_policy
from tests.graphs.shapes_subgraphs import fan_out_inside_a_subgraph
from tests.servers import Postgres
from tests.stack import stack


def picture(graph: Any) -> dict[str, Any]:
    """Everything a graph refers to, by identity, subgraphs included."""
    nodes = {
        name: (
            id(node),
            id(node.bound),
            id(node.retry_policy),
            tuple(map(id, node.subgraphs)),
            [picture(sub) for sub in node.subgraphs],
        )
        for name, node in graph.nodes.items()
    }
    plain = {
        k: id(v)
        for k, v in graph.__dict__.items()
        if k in ("channels", "checkpointer", "store", "retry_policy", "config")
    }
    return {"nodes": nodes, **plain}


@pytest.mark.parametrize("make", [fan_out_inside_a_subgraph, node_with_a_retry_policy])
async def test_running_turns_leaves_the_graph_as_it_was(make: Any, postgres: Postgres, temporal: str) -> None:
    graph = make()
    before = picture(graph)
    gated(graph)
    async with stack(postgres.clone(), temporal, {"graph": graph}) as running:
        row = await running.turn(thread=str(uuid.uuid4()), input={"trail": []})

    assert row["status"] == "success"
    assert picture(graph) == before
    assert (await graph.ainvoke({"trail": []}))["trail"], "it still runs without us"
