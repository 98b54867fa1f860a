"""An undoing that is cut short goes on, or is told of; a turn that is half undone never comes back to life."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from adapter.effects import effect
from adapter.store import requests
from adapter.store.pool import fetch_one
from api.turn_gateway import TurnGateway
from tests.graphs.slow import Switch
from tests.servers import Postgres
from tests.stack import stack
from tests.undo.booked import (
    UNBOOKING,
    State,
    book,
    booked,
    booking,
    chain,
    journal,
    keys_of,
    roll_back,
    unbook,
    unbooked,
)
from tests.workflow.resets import closed, reset
from workflows import names

pytestmark = pytest.mark.slow


async def fails(state: State) -> Any:
    raise ValueError("declined")


def _held(switch: Switch) -> Any:
    async def wait(state: State) -> Any:
        switch.started.set()
        await switch.go.wait()
        return {"trail": ["wait"]}

    return wait


@pytest.mark.parametrize("how", ["terminate", "cancel", "reset"])
async def test_a_rollback(postgres: Postgres, temporal: str, how: str) -> None:
    switch = Switch()
    graph = chain(a=booking("a"), b=booking("b"), wait=_held(switch), c=booking("c")).compile()
    async with stack(postgres.clone(), temporal, {"graph": graph}) as running:
        thread = str(uuid.uuid4())
        first = await running.submit(thread=thread, input={"trail": ["1"]})
        await switch.started.wait()
        UNBOOKING.go.clear()
        await roll_back(running, thread, first)
        await UNBOOKING.entered.wait()
        handle = running.client.get_workflow_handle(names.workflow_id(thread))
        if how == "terminate":
            await handle.terminate()
        elif how == "cancel":
            await handle.cancel()
        else:
            await reset(running, thread, after="b", without_signals=True)
        switch.go.set()
        UNBOOKING.go.set()
        await running.turn(thread=thread, input={"trail": ["2"]})
        await closed(running, thread)

        assert await fetch_one(running.pool, "get_turn", turn_id=first) is None
        assert set(unbooked()) == {"a", "b"}
        assert booked().count("c") == 1
        assert (await running.state("graph", thread)).values["trail"] == ["2", "a", "b", "wait", "c"]


async def test_a_failed_turn_whose_workflow_is_cancelled(postgres: Postgres, temporal: str) -> None:
    graph = chain(a=booking("a"), b=booking("b"), fails=fails).compile()
    async with stack(postgres.clone(), temporal, {"graph": graph}) as running:
        thread = str(uuid.uuid4())
        UNBOOKING.go.clear()
        failed = await running.submit(thread=thread, input={"trail": ["1"]})
        await UNBOOKING.entered.wait()
        waits = await running.submit(thread=thread, input={"trail": ["2"]})
        await running.client.get_workflow_handle(names.workflow_id(thread)).cancel()
        UNBOOKING.go.set()
        rows = [await running.ended(turn) for turn in (failed, waits)]
        await closed(running, thread)

        assert [row["status"] for row in rows] == ["error", "error"]
        assert unbooked() == ["b", "a", "b", "a"]


async def test_a_run_that_is_deleted(postgres: Postgres, temporal: str) -> None:
    graph = chain(a=booking("a"), b=booking("b"), fails=fails).compile()
    async with stack(postgres.clone(), temporal, {"graph": graph}) as running:
        thread = str(uuid.uuid4())
        UNBOOKING.go.clear()
        turn = await running.submit(thread=thread, input={"trail": ["1"]})
        await UNBOOKING.entered.wait()
        await requests.delete_turn(running.pool, thread, turn)
        UNBOOKING.go.set()
        await closed(running, thread)

        assert unbooked() == ["b", "a"]
        assert set((await journal(running, thread)).values()) == {"compensated"}


@pytest.mark.parametrize("raised", [asyncio.CancelledError(), SystemExit(1), TimeoutError()])
async def test_a_compensation_that_raises_anything_is_given_up(
    postgres: Postgres, temporal: str, raised: BaseException
) -> None:
    UNBOOKING.raises = [raised, raised]
    graph = chain(a=booking("a"), b=booking("b"), fails=fails).compile()
    async with stack(postgres.clone(), temporal, {"graph": graph}, compensation_attempts=2) as running:
        thread = str(uuid.uuid4())
        await running.turn(thread=thread, input={"trail": ["1"]})
        await closed(running, thread)

        assert unbooked() == ["b", "b", "a"]
        assert await journal(running, thread) == {"a": "compensated", "b": "uncompensated"}


async def test_a_compensation_that_hangs_is_given_up(postgres: Postgres, temporal: str) -> None:
    UNBOOKING.go.clear()
    graph = chain(a=booking("a"), fails=fails).compile()
    async with stack(
        postgres.clone(), temporal, {"graph": graph}, compensation_attempts=1, compensation_timeout=0.2
    ) as running:
        thread = str(uuid.uuid4())
        await running.turn(thread=thread, input={"trail": ["1"]})
        await closed(running, thread)

        assert await journal(running, thread) == {"a": "uncompensated"}


async def test_a_rollback_of_a_turn_without_a_run_undoes_its_effects(
    postgres: Postgres, temporal: str
) -> None:
    switch = Switch()
    graph = chain(a=booking("a"), wait=_held(switch)).compile()
    async with stack(postgres.clone(), temporal, {"graph": graph}) as running:
        thread = str(uuid.uuid4())
        turn = await running.submit(thread=thread, input={"trail": ["1"]})
        await switch.started.wait()
        await running.client.get_workflow_handle(names.workflow_id(thread)).terminate()
        gateway = TurnGateway(running.client, running.pool, running.settings)
        await gateway.cancel(thread, turn, roll_back=True)
        await closed(running, thread)
        switch.go.set()

        assert unbooked() == ["a"]
        assert await fetch_one(running.pool, "get_turn", turn_id=turn) is None
        assert (await running.state("graph", thread)).values == {}


async def test_a_business_key_that_was_declined_before(postgres: Postgres, temporal: str) -> None:
    """Whoever carries an effect out answers for it, not who tried first."""
    declined = ["yes"]

    async def pay(what: str, *, idempotency_key: str) -> str:
        if declined:
            declined.clear()
            raise ValueError("declined")
        return await book(what, idempotency_key=idempotency_key)

    async def node(state: State) -> Any:
        await effect("pay", pay, "order", key="order-1", compensate=unbook)
        return {}

    async with stack(
        postgres.clone(), temporal, {"graph": chain(pay=node, fails=fails).compile()}
    ) as running:
        thread = str(uuid.uuid4())
        for _ in range(2):
            await running.turn(thread=thread, input={"trail": ["1"]})
            await closed(running, thread)

        assert (booked(), unbooked()) == (["order"], ["order"])


async def test_a_business_key_that_could_not_be_given_back(postgres: Postgres, temporal: str) -> None:
    """It is not charged a second time."""
    UNBOOKING.raises = [ValueError("no refunds")]
    graph = chain(pay=booking("order", key="order-1"), fails=fails).compile()
    async with stack(postgres.clone(), temporal, {"graph": graph}, compensation_attempts=1) as running:
        thread = str(uuid.uuid4())
        for _ in range(2):
            await running.turn(thread=thread, input={"trail": ["1"]})
            await closed(running, thread)

        assert keys_of("order") == 1
        assert await journal(running, thread) == {"order": "uncompensated"}


async def test_going_on_from_a_checkpoint_asks_whose_it_is(postgres: Postgres, temporal: str) -> None:
    bad: list[str] = []

    async def last(state: State) -> Any:
        if bad:
            raise ValueError("declined")
        return {"trail": ["last"]}

    async with stack(
        postgres.clone(), temporal, {"graph": chain(a=booking("a"), last=last).compile()}
    ) as running:
        thread = str(uuid.uuid4())
        await running.turn(thread=thread, input={"trail": ["1"]})
        good = (await running.state("graph", thread)).config["configurable"]["checkpoint_id"]
        bad.append("yes")
        await running.turn(thread=thread, input={"trail": ["2"]})
        await closed(running, thread)
        undone = (await running.state("graph", thread)).config["configurable"]["checkpoint_id"]
        bad.clear()
        from_good = await running.turn(thread=thread, input=None, checkpoint={"checkpoint_id": good})
        from_undone = await running.turn(thread=thread, input=None, checkpoint={"checkpoint_id": undone})

        assert from_good["status"] == "success"
        assert from_undone["error"]["error"] == "Undone"
