"""Owns the question what a graph starts with: the one effect that every new input leads to, if there is such a one.

Whoever submits a turn tells the workflow, which begins the turn in that effect's own activity: one round trip through
Temporal less. Nothing depends on it: an activity that meets another graph runs what it would have run anyway.
"""

from __future__ import annotations

from dataclasses import dataclass

from langgraph.constants import START
from langgraph.graph.state import CompiledStateGraph

from adapter import _pregel
from adapter._pregel import AnyGraph
from adapter.policy import policy_of


@dataclass(frozen=True, slots=True)
class FirstEffect:
    """An effect as a workflow schedules it.

    Attributes:
        node: the node's name.
        options: see `NodePolicy`.
    """

    node: str
    options: dict[str, float | int | str]


def first_effect(graph: AnyGraph) -> FirstEffect | None:
    """Returns the effect node that the graph's only edge from its start leads to, or None.

    Not one with a task queue or attempts of its own: these are meant for the node, not for the turn's begin.
    """
    if not isinstance(graph, CompiledStateGraph):
        return None
    builder = graph.builder
    targets = [target for source, target in builder.edges if source == START]
    if len(targets) != 1 or builder.branches.get(START):
        return None
    facts = _pregel.nodes_of(graph).get(targets[0])
    if facts is None:
        return None
    policy = policy_of(facts)
    if policy.kind != "effect" or {"queue", "attempts"} & policy.options.keys():
        return None
    return FirstEffect(facts.name, policy.options)
