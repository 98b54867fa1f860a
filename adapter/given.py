"""Owns what LangGraph is given for one run of a turn's graph: its config, with who listens."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from adapter import _pregel
from adapter.plan import Plan
from adapter.store.turns import TurnRow
from adapter.tap import Asked, Tap
from adapter.turn_request import base_config


def config_for(
    turn: TurnRow, plan: Plan, tap: Tap, asked: Asked, seen: set[int | str], *, store: BaseStore | None
) -> RunnableConfig:
    """Returns the config of a run.

    Args:
        turn: the turn, whose request's config this is made of.
        plan: where the run starts and what it may take.
        tap: is told of everything.
        asked: what the turn's client wants to see.
        seen: ids of messages that are not streamed once more.
        store: LangGraph's long-term memory.
    """
    config = base_config(turn)

    def write(payload: Any) -> None:
        ns = str(get_config().get("configurable", {}).get("checkpoint_ns", ""))
        tap.custom(ns, payload)

    runtime: Runtime[Any] = Runtime(store=store, stream_writer=write)
    configurable = dict(config.get("configurable", {}))
    if plan.checkpoint_id is not None:
        configurable["checkpoint_id"] = plan.checkpoint_id
    config["configurable"] = _pregel.run_config(
        configurable, runtime=runtime, tap=tap, modes=asked.loop_modes, resume_map=plan.resume
    )
    config["recursion_limit"] = plan.recursion_limit
    callbacks: list[Any] = []
    if asked.events:
        # First: one client takes a token once only if its event comes before its message.
        callbacks.append(_pregel.EventsTap(tap))
    if asked.messages:
        callbacks.append(_pregel.MessagesTap(tap, subgraphs=asked.subgraphs, seen=seen))
    if callbacks:
        config["callbacks"] = callbacks
    return config
