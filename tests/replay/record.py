"""Records the stored histories: `python -m tests.replay.record NAME` for one, without a name for all.

A history stands for what running turns look like in the field: keep it until no run of that version can be open any
more. When a change of the workflow makes its replay fail, the change needs `workflow.patched`, not a new recording.
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

from temporalio.client import Client

from tests import servers
from tests.graphs.shapes import interrupts_in_parallel_subgraphs, send_to_subgraphs
from tests.graphs.slow import Switch, failing
from tests.stack import Stack, stack

FOLDER = Path(__file__).parent / "histories"
ROOT = Path(__file__).resolve().parent.parent.parent


async def fan_out(running: Stack, thread: str) -> None:
    """Three parallel branches of two effects each, then one more: begin, branches, advance."""
    await running.turn("send", thread=thread, input={"trail": [], "n": 3})


async def interrupted(running: Stack, thread: str) -> None:
    """Branches of which two stop at an interrupt: held tasks."""
    await running.turn("asking", thread=thread, input={"trail": []})


async def failed_with_a_queue(running: Stack, thread: str) -> None:
    """A turn that fails while another waits: record_failure, hand-over."""
    first = await running.submit("failing", thread=thread, input={"trail": []})
    second = await running.submit("failing", thread=thread, input={"trail": []})
    SWITCH.go.set()
    await running.ended(first)
    await running.ended(second)


SWITCH = Switch(failures=1)
RECORDINGS: dict[str, Callable[[Stack, str], Awaitable[None]]] = {
    f.__name__: f for f in (fan_out, interrupted, failed_with_a_queue)
}


async def record(database_url: str, address: str, names: list[str]) -> None:
    graphs = {
        "send": send_to_subgraphs(),
        "asking": interrupts_in_parallel_subgraphs(),
        "failing": failing(SWITCH),
    }
    client = await Client.connect(address, identity="recorder")
    async with stack(database_url, address, graphs, client=client) as running:
        for name in names or RECORDINGS:
            thread = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
            await RECORDINGS[name](running, thread)
            runs = [run async for run in client.list_workflows(f'WorkflowId = "thread/{thread}"')]
            oldest = min(runs, key=lambda run: run.start_time)
            handle = client.get_workflow_handle(oldest.id, run_id=oldest.run_id)
            history = await handle.fetch_history()
            # Failures carry the paths of whoever recorded them.
            text = history.to_json().replace(f"{ROOT}/.venv/lib/", "").replace(f"{ROOT}/", "")
            (FOLDER / f"{name}.json").write_text(text + "\n")
            print(name, len(history.events), "events")


if __name__ == "__main__":
    with servers.postgres() as server, servers.temporal() as where:
        asyncio.run(record(server.clone(), where, sys.argv[1:]))
