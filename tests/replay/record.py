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

from adapter.store import stops
from tests import servers
from tests.graphs.shapes import interrupts_in_parallel_subgraphs, send_to_subgraphs
from tests.graphs.slow import Switch, failing, waiting
from tests.stack import Stack, stack
from tests.workflow.resets import closed, reset
from workflows import names

FOLDER = Path(__file__).parent / "histories"
ROOT = Path(__file__).resolve().parent.parent.parent


async def plain(running: Stack, thread: str) -> None:
    """Begin, three effects, the end."""
    SWITCH.go.set()
    await running.turn("waiting", thread=thread, apart=True, input={"trail": []})


async def begun_by_an_effect(running: Stack, thread: str) -> None:
    """Three effects, the first of which begins the turn."""
    SWITCH.go.set()
    await running.turn("waiting", thread=thread, input={"trail": []})


async def failed_and_begun_by_an_effect(running: Stack, thread: str) -> None:
    """The same that fails, and is done over from its very beginning."""
    SWITCH.go.set()
    SWITCH.failures = 1
    await running.turn("failing", thread=thread, input={"trail": []})
    await closed(running, thread)
    await reset(running, thread, after="")


async def queued(running: Stack, thread: str) -> None:
    """A turn that ends while another waits: continue-as-new."""
    await _in_wait(running, thread)
    second = await running.submit("waiting", thread=thread, apart=True, input={"trail": []})
    SWITCH.go.set()
    await running.ended(second)


async def cancelled(running: Stack, thread: str) -> None:
    """A signal stops the running effect: finish."""
    turn = await _in_wait(running, thread)
    await _signal(running, thread, names.CANCEL, turn)
    await running.ended(turn)


async def rolled_back(running: Stack, thread: str) -> None:
    """A turn that waits cuts in and takes the running one back: compensate, finish, continue-as-new."""
    await _in_wait(running, thread)
    second = await running.submit(
        "waiting", thread=thread, apart=True, cut_in=True, roll_back=True, input={"trail": []}
    )
    SWITCH.go.set()
    await running.ended(second)


async def _in_wait(running: Stack, thread: str) -> str:
    SWITCH.go.clear()
    SWITCH.started.clear()
    turn = await running.submit("waiting", thread=thread, apart=True, input={"trail": []})
    await SWITCH.started.wait()
    return turn


async def _signal(running: Stack, thread: str, signal: str, turn: str) -> None:
    await running.client.get_workflow_handle(names.workflow_id(thread)).signal(signal, turn)
    await stops.notify_cancel(running.pool, turn)


async def fan_out(running: Stack, thread: str) -> None:
    """Three parallel branches of two effects each, then one more: begin, branches, advance."""
    await running.turn("send", thread=thread, input={"trail": [], "n": 3})


async def interrupted(running: Stack, thread: str) -> None:
    """Branches of which two stop at an interrupt: held tasks."""
    await running.turn("asking", thread=thread, input={"trail": []})


async def failed_with_a_queue(running: Stack, thread: str) -> None:
    """A turn that fails while another waits: record_failure, hand-over."""
    SWITCH.go.clear()
    SWITCH.failures = 1
    first = await running.submit("failing", thread=thread, input={"trail": []})
    second = await running.submit("failing", thread=thread, input={"trail": []})
    SWITCH.go.set()
    await running.ended(first)
    await running.ended(second)


async def failed_and_retried(running: Stack, thread: str) -> None:
    """A failed turn, reset to its last workflow task: the failed effect again, in the same history."""
    await _fail(running, thread)
    await reset(running, thread)


async def failed_and_forked(running: Stack, thread: str) -> None:
    """A failed turn, reset to the end of its begin: the thread is past that step, so it forks."""
    await _fail(running, thread)
    await reset(running, thread, after="turn:begin")


async def _fail(running: Stack, thread: str) -> None:
    SWITCH.go.set()
    SWITCH.failures = 1
    await running.turn("failing", thread=thread, apart=True, input={"trail": []})
    await closed(running, thread)


SWITCH = Switch()
RECORDINGS: dict[str, Callable[[Stack, str], Awaitable[None]]] = {
    f.__name__: f
    for f in (
        plain,
        begun_by_an_effect,
        failed_and_begun_by_an_effect,
        fan_out,
        interrupted,
        queued,
        cancelled,
        rolled_back,
        failed_with_a_queue,
        failed_and_retried,
        failed_and_forked,
    )
}


async def record(database_url: str, address: str, which: list[str]) -> None:
    graphs = {
        "send": send_to_subgraphs(),
        "asking": interrupts_in_parallel_subgraphs(),
        "failing": failing(SWITCH),
        "waiting": waiting(SWITCH),
    }
    client = await Client.connect(address, identity="recorder")
    async with stack(database_url, address, graphs, client=client) as running:
        for name in which or RECORDINGS:
            thread = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
            await RECORDINGS[name](running, thread)
            runs = [run async for run in client.list_workflows(f'WorkflowId = "thread/{thread}"')]
            # A run that Reset made holds the history of the one before; of a chain the first one is meant.
            of = max if name.startswith("failed_and") else min
            run = of(runs, key=lambda run: run.start_time)
            await closed(running, thread)
            handle = client.get_workflow_handle(run.id, run_id=run.run_id)
            history = await handle.fetch_history()
            # A replayer takes the run's id from here; in a run that Reset made it is another one's.
            started = history.events[0].workflow_execution_started_event_attributes
            started.original_execution_run_id = str(run.run_id)
            # Failures carry the paths of whoever recorded them.
            text = history.to_json().replace(f"{ROOT}/.venv/lib/", "").replace(f"{ROOT}/", "")
            (FOLDER / f"{name}.json").write_text(text + "\n")
            print(name, len(history.events), "events")


if __name__ == "__main__":
    with servers.postgres() as server, servers.temporal() as where:
        asyncio.run(record(server.clone(), where, sys.argv[1:]))
