"""Reset as people do it: Temporal's command line, and the request that its web UI's button sends (I4)."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator

import httpx
import pytest
from temporalio.api.enums.v1 import EventType

from adapter.store import stops
from tests import servers
from tests.graphs.slow import Switch, failing, waiting
from tests.servers import Postgres
from tests.stack import Stack, stack
from tests.workflow.resets import closed
from workflows import names


async def _failed(running: Stack, thread: str) -> str:
    turn = await running.submit(thread=thread, input={"trail": []})
    assert (await running.ended(turn))["status"] == "error"
    await closed(running, thread)
    return turn


async def _command(address: str, *arguments: str) -> None:
    process = await asyncio.create_subprocess_exec(
        servers.temporal_binary(), "workflow", "reset", "--address", address, "--reason", "again", *arguments
    )
    assert await process.wait() == 0


async def _second_task(running: Stack, thread: str) -> str:
    history = await running.history(thread)
    done = [e for e in history.events if e.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED]
    return str(done[1].event_id)


@pytest.mark.parametrize("where", [("--type", "LastWorkflowTask"), ("--type", "FirstWorkflowTask"), None])
async def test_temporal_workflow_reset(
    postgres: Postgres, temporal: str, where: tuple[str, str] | None
) -> None:
    switch = Switch(failures=1)
    switch.go.set()
    async with stack(postgres.clone(), temporal, {"graph": failing(switch)}) as running:
        thread = str(uuid.uuid4())
        turn = await _failed(running, thread)
        if where is None:
            where = ("--event-id", await _second_task(running, thread))
        await _command(temporal, "--workflow-id", names.workflow_id(thread), *where)
        await closed(running, thread)

        assert (await running.ended(turn))["status"] == "success"
        assert (await running.state("graph", thread)).values["trail"] == ["first", "pay", "last"]
        assert len(switch.keys) == 2
        assert len(set(switch.keys)) == 1


@pytest.fixture
def with_ui() -> Iterator[tuple[str, int]]:
    ui_port = servers.free_port()
    with servers.temporal(ui_port=ui_port) as address:
        yield address, ui_port


@pytest.mark.slow
async def test_the_button_of_the_web_ui(postgres: Postgres, with_ui: tuple[str, int]) -> None:
    switch = Switch(failures=1)
    switch.go.set()
    address, ui_port = with_ui
    async with stack(postgres.clone(), address, {"graph": failing(switch)}) as running:
        thread = str(uuid.uuid4())
        turn = await _failed(running, thread)
        handle = running.client.get_workflow_handle(names.workflow_id(thread))
        run_id = (await handle.describe()).run_id
        history = await running.history(thread)
        last = max(
            e.event_id for e in history.events if e.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
        )
        where = names.workflow_id(thread).replace("/", "%2F")
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{ui_port}", trust_env=False) as http:
            # Brings the cookie that its buttons must show; the UI connects to Temporal when it likes.
            while (await http.get("/api/v1/namespaces/default")).status_code != 200:
                await asyncio.sleep(0.1)
            answered = await http.post(
                f"/api/v1/namespaces/default/workflows/{where}/reset",
                headers={"X-CSRF-Token": http.cookies["_csrf"]},
                json={
                    "workflowExecution": {"workflowId": names.workflow_id(thread), "runId": run_id},
                    "workflowTaskFinishEventId": str(last),
                    "requestId": str(uuid.uuid4()),
                    "reason": "again",
                },
            )
        assert answered.status_code == 200, answered.text
        await closed(running, thread)

        assert (await running.ended(turn))["status"] == "success"
        assert len(switch.keys) == 2
        assert len(set(switch.keys)) == 1


@pytest.mark.parametrize(
    ("exclude", "status"), [((), "interrupted"), (("--reapply-exclude", "Signal"), "success")]
)
async def test_a_cancelled_turn_is_cancelled_again_unless_its_signal_is_left_out(
    postgres: Postgres, temporal: str, exclude: tuple[str, ...], status: str
) -> None:
    switch = Switch()
    async with stack(postgres.clone(), temporal, {"graph": waiting(switch)}) as running:
        thread = str(uuid.uuid4())
        turn = await running.submit(thread=thread, input={"trail": []})
        await switch.started.wait()
        handle = running.client.get_workflow_handle(names.workflow_id(thread))
        await handle.signal(names.CANCEL, turn)
        await stops.notify_cancel(running.pool, turn)
        await running.ended(turn)
        await closed(running, thread)
        switch.go.set()
        where = (
            "--workflow-id",
            names.workflow_id(thread),
            "--event-id",
            await _second_task(running, thread),
        )
        await _command(temporal, *where, *exclude)
        await closed(running, thread)

        assert (await running.ended(turn))["status"] == status
        trail = ["first", "wait", "last"] if status == "success" else ["first"]
        assert (await running.state("graph", thread)).values["trail"] == trail
