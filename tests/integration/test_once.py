"""Mode "once": never a silent repeat; an effect of unknown outcome stops the turn until a person settles it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy, interrupt
from typing_extensions import TypedDict

from adapter.effects import effect
from tests.servers import Postgres
from tests.stack import Stack, stack


class State(TypedDict, total=False):
    sent: Any


class Lost(Exception):
    """The connection broke after the request was sent."""


class Refused(Exception):
    did_not_happen = True


def sending(calls: list[str], fails: list[Exception], *, ask_first: bool = False) -> Any:
    async def send(text: str) -> str:
        calls.append(text)
        if fails:
            raise fails.pop(0)
        return f"sent {len(calls)}"

    async def node(state: State) -> Any:
        greeting = interrupt("greeting?") if ask_first else "hello"
        receipt = await effect("mail", send, greeting, mode="once")
        farewell = interrupt("farewell?") if ask_first else "bye"
        return {"sent": [greeting, receipt, farewell]}

    builder: Any = StateGraph(State)
    policy = RetryPolicy(initial_interval=0.01, jitter=False, retry_on=Exception)
    builder.add_node("send", node, retry_policy=policy).add_edge(START, "send")
    return builder.compile()


CALLS: list[str] = []
FAILS: list[Exception] = []


@pytest_asyncio.fixture(scope="module")
async def running(postgres: Postgres, temporal: str) -> AsyncIterator[Stack]:
    graphs = {"graph": sending(CALLS, FAILS), "asking": sending(CALLS, FAILS, ask_first=True)}
    async with stack(postgres.clone(), temporal, graphs) as it:
        yield it


@pytest.fixture(autouse=True)
def _lost_once() -> None:
    CALLS.clear()
    FAILS[:] = [Lost()]


async def sent(running: Stack, thread: str, graph: str = "graph") -> Any:
    return (await running.state(graph, thread)).values.get("sent")


async def test_an_unknown_effect_stops_the_turn_and_tells_of_itself(running: Stack) -> None:
    thread = str(uuid.uuid4())
    await running.turn(thread=thread, input={})
    (question,) = (await running.state("graph", thread)).interrupts

    assert len(CALLS) == 1
    assert {"effect": "mail", "node": "send", "attempts": 1}.items() <= question.value.items()
    assert question.response_schema["properties"]["outcome"]["enum"] == ["happened", "did not happen"]


@pytest.mark.parametrize(
    ("answer", "result", "times"),
    [
        ({"outcome": "happened", "result": "seen in the outbox"}, "seen in the outbox", 1),
        ({"outcome": "did not happen"}, "sent 2", 2),
    ],
)
async def test_a_person_settles_it(running: Stack, answer: dict[str, str], result: str, times: int) -> None:
    thread = str(uuid.uuid4())
    await running.turn(thread=thread, input={})
    await running.turn(thread=thread, command={"resume": answer})

    assert await sent(running, thread) == ["hello", result, "bye"]
    assert len(CALLS) == times


async def test_a_wrong_answer_fails_and_can_be_given_again(running: Stack) -> None:
    thread = str(uuid.uuid4())
    await running.turn(thread=thread, input={})
    wrong = await running.turn(thread=thread, command={"resume": "maybe"})
    right = await running.turn(thread=thread, command={"resume": {"outcome": "happened"}})

    assert (wrong["status"], right["status"]) == ("error", "success")
    assert len(CALLS) == 1


async def test_questions_before_and_after_keep_their_answers(running: Stack) -> None:
    thread = str(uuid.uuid4())
    await running.turn("asking", thread=thread, input={})
    for answer in ("good day", {"outcome": "happened", "result": "receipt"}, "see you"):
        await running.turn("asking", thread=thread, command={"resume": answer})

    assert await sent(running, thread, "asking") == ["good day", "receipt", "see you"]
    assert CALLS == ["good day"]


async def test_a_refusal_that_is_known_is_retried(running: Stack) -> None:
    FAILS[:] = [Refused()]
    thread = str(uuid.uuid4())
    await running.turn(thread=thread, input={})

    assert await sent(running, thread) == ["hello", "sent 2", "bye"]
