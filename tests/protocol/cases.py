"""A request and the story that its stream tells; how a test asks for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import dedent
from typing import Any, cast

from tests.api.serving import Event, Serving
from tests.protocol.narrate import narrated

HI: dict[str, Any] = {"messages": [{"role": "user", "content": "hi", "id": "m1"}]}
ASKS = {**HI, "mode": "ask"}
FAILS = {**HI, "mode": "fail"}


@dataclass(frozen=True)
class Case:
    """One request.

    Attributes:
        body: what is in it besides the assistant and, if there is nothing else, a message.
        story: a line for each event, as `narrated` tells it.
        before: requests that are made on the thread first.
        parallel: whether tasks run at the same time, so that the order of their events is not known.
    """

    body: Mapping[str, Any]
    story: str
    before: Sequence[Mapping[str, Any]] = ()
    parallel: bool = False

    @property
    def lines(self) -> list[str]:
        """The story's lines."""
        return self.ordered(dedent(self.story).strip().splitlines())

    def ordered(self, lines: list[str]) -> list[str]:
        """Returns lines in an order that is always the same."""
        return sorted(lines) if self.parallel else lines


async def told(api: Serving, graph: str, case: Case) -> list[str]:
    """Makes the requests on a thread of their own; returns what the last one's stream tells."""
    thread = await api.thread()
    for body in case.before:
        await api.wait(thread, graph, **_whole(body))
    return case.ordered(narrated(await events_of(api, thread, graph, case.body)))


async def events_of(api: Serving, thread: str, graph: str, body: Mapping[str, Any]) -> list[Event]:
    """Makes one request; returns its events."""
    return await api.stream(thread, graph, **_whole(body))


def _whole(body: Mapping[str, Any]) -> dict[str, Any]:
    return dict(body) if {"input", "command"} & body.keys() else {"input": HI, **body}


def filled(value: Any, names: Mapping[str, str]) -> Any:
    """Returns a request with the names in braces replaced."""
    if isinstance(value, str):
        for name, one in names.items():
            value = value.replace(f"{{{name}}}", one)
    elif isinstance(value, list):
        return [filled(one, names) for one in cast("list[Any]", value)]
    elif isinstance(value, Mapping):
        return {key: filled(one, names) for key, one in cast("Mapping[str, Any]", value).items()}
    return value
