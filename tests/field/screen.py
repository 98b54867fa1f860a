"""What a chat client shows of a stream: as the official JavaScript client does it, and the simplest ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.api.serving import Event


@dataclass
class Screen:
    """The messages on it, by id, in order.

    Chunks of a message are appended to it, whole messages and `values` replace, `remove` removes.
    """

    messages: dict[str, str] = field(default_factory=dict[str, str])

    def take(self, *events: Event) -> None:
        """Shows what these tell."""
        for event in events:
            if event.name == "values":
                self.messages = {m["id"]: m["content"] for m in event.data["messages"] if m["type"] == "ai"}
            elif event.name.split("|")[0] == "messages":
                self._chunk(event.data[0])
            elif event.name in ("messages/partial", "messages/complete"):
                for message in event.data:
                    self.messages.pop(message["id"], None)
                    self._chunk(message)

    def _chunk(self, message: dict[str, Any]) -> None:
        if message["type"] == "remove":
            self.messages.pop(message["id"], None)
        else:
            before = self.messages.get(message["id"], "")
            self.messages[message["id"]] = before + message["content"]

    @property
    def texts(self) -> list[str]:
        """What is written in the messages."""
        return list(self.messages.values())


def shown(events: Sequence[Event], *names: str) -> list[str]:
    """Returns the texts on a screen that takes the events of these names only."""
    screen = Screen()
    screen.take(*(e for e in events if e.name.split("|")[0] in names))
    return screen.texts
