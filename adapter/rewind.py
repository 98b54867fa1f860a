"""Owns the rewinding of subgraphs that keep one history a thread, when the root graph forks at an earlier checkpoint.

LangGraph forks the graph that is addressed. A subgraph compiled with `checkpointer=True` has its own line of
checkpoints, whose head a later entry would find as the abandoned branch left it: state doubled, visits counted on.
"""

from __future__ import annotations

from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, copy_checkpoint, empty_checkpoint
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

from adapter.store.pool import Connection
from adapter.store.sql import query


async def rewind_subgraphs(conn: Connection, thread_id: str, turn_id: str, checkpoint_id: str) -> None:
    """Makes what each such subgraph held before a root checkpoint its head again; in the caller's transaction.

    Args:
        conn: in a transaction.
        thread_id: the thread.
        turn_id: the turn that forks; the new checkpoints are its own.
        checkpoint_id: where the root graph forks.
    """
    params = {"thread_id": thread_id, "checkpoint_id": checkpoint_id}
    rows = await (await conn.execute(query("stateful_namespaces"), params)).fetchall()
    saver = AsyncPostgresSaver(cast("Any", conn))
    for row in rows:
        ns = row["checkpoint_ns"]
        within: RunnableConfig = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns}}
        before: RunnableConfig = {"configurable": {"checkpoint_id": checkpoint_id}}
        found = [one async for one in saver.alist(within, before=before, limit=1)]
        new = empty_checkpoint()
        metadata: dict[str, Any] = {"source": "fork", "step": -2, "parents": {}}
        parent = within
        if found:
            new = cast(
                "Checkpoint", {**copy_checkpoint(found[0].checkpoint), "id": new["id"], "ts": new["ts"]}
            )
            metadata = {**cast("dict[str, Any]", found[0].metadata), "source": "fork"}
            parent = found[0].config
        await saver.aput(parent, new, cast("CheckpointMetadata", {**metadata, "run_id": turn_id}), {})
