"""Finished effects with `compensate=` are undone, the last first, when their turn fails or is rolled back."""

from __future__ import annotations

import operator
import uuid
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from adapter.effects import effect, effect_sync
from adapter.store import requests, stops
from tests.graphs.slow import Switch
from tests.servers import Postgres
from tests.stack import Stack, stack
from tests.workflow.resets import closed, reset
from workflows import names

CALLS: list[tuple[str, Any, str]] = []
UNWILLING: dict[str, int] = {}


class State(TypedDict, total=False):
    trail: Annotated[list[str], operator.add]


@pytest.fixture(autouse=True)
def clean() -> None:
    CALLS.clear()
    UNWILLING.clear()


async def book(what: str, *, idempotency_key: str) -> str:
    CALLS.append(("book", what, idempotency_key))
    return f"receipt for {what}"


async def unbook(receipt: str, *, idempotency_key: str) -> None:
    CALLS.append(("unbook", receipt, idempotency_key))
    if UNWILLING.get(receipt, 0) > 0:
        UNWILLING[receipt] -= 1
        raise ConnectionError("the provider is away")


def unbook_sync(receipt: str, *, idempotency_key: str) -> None:
    CALLS.append(("unbook", receipt, idempotency_key))


def book_sync(what: str, *, idempotency_key: str) -> str:
    CALLS.append(("book", what, idempotency_key))
    return f"receipt for {what}"


def booking(last: Callable[[State], Any]) -> Any:
    """room → seat (a synchronous node) → mail (not undone) → last."""

    async def room(state: State) -> Any:
        return {"trail": [await effect("room", book, "room", compensate=unbook)]}

    def seat(state: State) -> Any:
        return {"trail": [effect_sync("seat", book_sync, "seat", compensate=unbook_sync)]}

    async def mail(state: State) -> Any:
        return {"trail": [await effect("mail", book, "mail")]}

    builder: Any = StateGraph(State)
    previous = START
    for name, node in {"room": room, "seat": seat, "mail": mail, "last": last}.items():
        builder.add_node(name, node).add_edge(previous, name)
        previous = name
    return builder.compile()


async def fails(state: State) -> Any:
    raise ValueError("declined")


async def states(running: Stack, thread: str) -> dict[str, str]:
    return {row["name"]: row["state"] for row in await requests.list_effects(running.pool, thread)}


def undone() -> list[str]:
    return [what for call, what, _ in CALLS if call == "unbook"]


async def test_a_failed_turn_is_undone_in_reverse(postgres: Postgres, temporal: str) -> None:
    async with stack(postgres.clone(), temporal, {"graph": booking(fails)}) as running:
        thread = str(uuid.uuid4())
        row = await running.turn(thread=thread, input={"trail": []})
        await closed(running, thread)

        assert row["status"] == "error"
        assert undone() == ["receipt for seat", "receipt for room"]
        assert await states(running, thread) == {
            "room": "compensated",
            "seat": "compensated",
            "mail": "finished",
        }
        assert len({key for _, _, key in CALLS}) == 5


async def test_it_can_be_neither_retried_nor_continued(postgres: Postgres, temporal: str) -> None:
    async with stack(postgres.clone(), temporal, {"graph": booking(fails)}) as running:
        thread = str(uuid.uuid4())
        failed = await running.submit(thread=thread, input={"trail": []})
        await running.ended(failed)
        await closed(running, thread)
        calls = list(CALLS)
        await reset(running, thread)
        await closed(running, thread)
        again = await running.turn(thread=thread, input=None)

        assert (await running.ended(failed))["status"] == "error"
        assert again["error"]["error"] == "Undone"
        assert calls == CALLS


@pytest.mark.slow
async def test_a_compensation_is_called_again_and_then_given_up(postgres: Postgres, temporal: str) -> None:
    UNWILLING["receipt for room"] = 1000
    async with stack(
        postgres.clone(), temporal, {"graph": booking(fails)}, compensation_attempts=2
    ) as running:
        thread = str(uuid.uuid4())
        await running.turn(thread=thread, input={"trail": []})
        await closed(running, thread)
        (room,) = [e for e in await requests.list_effects(running.pool, thread) if e["name"] == "room"]

        assert undone() == ["receipt for seat", "receipt for room", "receipt for room"]
        assert len({key for _, what, key in CALLS if what == "receipt for room"}) == 1
        assert (room["state"], room["compensations"], room["error"]) == (
            "uncompensated",
            2,
            "ConnectionError",
        )


async def test_effects_before_a_question_are_undone_when_the_resumed_turn_fails(
    postgres: Postgres, temporal: str
) -> None:
    async def ask(state: State) -> Any:
        if interrupt("go on?") != "yes":
            raise ValueError("refused")
        return {}

    async with stack(postgres.clone(), temporal, {"graph": booking(ask)}) as running:
        thread = str(uuid.uuid4())
        await running.turn(thread=thread, input={"trail": []})
        assert undone() == []
        await running.turn(thread=thread, command={"resume": "no"})
        await closed(running, thread)
        assert undone() == ["receipt for seat", "receipt for room"]

        # Another turn's effects are its own.
        await running.turn(thread=thread, input={"trail": []})
        await running.turn(thread=thread, command={"resume": "yes"})
        assert len(undone()) == 2


async def test_a_rolled_back_turn_is_undone_and_gone(postgres: Postgres, temporal: str) -> None:
    switch = Switch()

    async def wait(state: State) -> Any:
        switch.started.set()
        await switch.go.wait()
        return {"trail": ["last"]}

    async with stack(postgres.clone(), temporal, {"graph": booking(wait)}) as running:
        thread, key = str(uuid.uuid4()), "the client's key"
        turn = await running.submit(thread=thread, key=key, input={"trail": []})
        await switch.started.wait()
        handle = running.client.get_workflow_handle(names.workflow_id(thread))
        await handle.signal(names.ROLL_BACK, turn)
        await stops.notify_cancel(running.pool, turn)
        await closed(running, thread)

        assert undone() == ["receipt for seat", "receipt for room"]
        assert (await running.state("graph", thread)).values == {}
        switch.go.set()
        again = await running.submit(thread=thread, key=key, input={"trail": []})
        assert again == turn
        assert (await running.ended(again))["status"] == "success"
        # What was given back is booked anew, not replayed.
        rooms = [key for call, what, key in CALLS if (call, what) == ("book", "room")]
        mails = [key for call, what, key in CALLS if (call, what) == ("book", "mail")]
        assert len(set(rooms)) == 2
        assert len(set(mails)) == 1


async def test_a_function_that_no_other_process_finds_is_refused(postgres: Postgres, temporal: str) -> None:
    async def pay(state: State) -> Any:
        return {"trail": [await effect("room", book, "room", compensate=lambda *_, **__: None)]}

    builder: Any = StateGraph(State)
    builder.add_node("pay", pay).add_edge(START, "pay")
    async with stack(postgres.clone(), temporal, {"graph": builder.compile()}) as running:
        row = await running.turn(thread=str(uuid.uuid4()), input={"trail": []})

        assert row["error"]["error"] == "TypeError"
        assert "top of a module" in row["error"]["message"]
        assert CALLS == []
