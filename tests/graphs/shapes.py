"""The table of graph shapes that durable turns are held against plain LangGraph on. Add a shape: in the `shapes_*`
module that it fits, write a function that returns a compiled graph, decorate it with the turns to run on it. A new
module of shapes is named here, since importing it is what enters its shapes in the table."""

from __future__ import annotations

from tests.graphs import shapes_failures, shapes_flow, shapes_interrupts, shapes_state, shapes_subgraphs
from tests.graphs.shapes_flow import inline_nodes, linear, send_to_many
from tests.graphs.shapes_interrupts import interrupts_in_parallel_subgraphs
from tests.graphs.shapes_subgraphs import nested_subgraph, send_to_subgraphs
from tests.graphs.table import SHAPES, Shape

__all__ = [
    "SHAPES",
    "Shape",
    "inline_nodes",
    "interrupts_in_parallel_subgraphs",
    "linear",
    "nested_subgraph",
    "send_to_many",
    "send_to_subgraphs",
    "shapes_failures",
    "shapes_flow",
    "shapes_interrupts",
    "shapes_state",
    "shapes_subgraphs",
]
