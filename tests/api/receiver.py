"""A receiver of webhooks: a server in a thread, which notes what it is sent and answers as told."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any

import orjson


@dataclass(frozen=True)
class Call:
    """One request."""

    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Receiver:
    """What came in.

    Attributes:
        port: on 127.0.0.1.
        calls: as they came.
        answers: statuses of the next ones; 200 when there is none left.
        go: unset, it lets callers wait.
    """

    port: int = 0
    calls: Queue[Call] = field(default_factory=Queue[Call])
    answers: deque[int] = field(default_factory=deque[int])
    go: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/ended?who=me"


@contextlib.contextmanager
def receiving() -> Generator[Receiver]:
    """Yields a running receiver."""
    it = Receiver()
    it.go.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            it.calls.put(Call(self.path, {k.lower(): v for k, v in self.headers.items()}, orjson.loads(body)))
            it.go.wait(20)
            self.send_response(it.answers.popleft() if it.answers else 200)
            self.send_header("location", f"http://127.0.0.1:{it.port}/elsewhere")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    it.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield it
    finally:
        it.go.set()
        server.shutdown()
        thread.join()
        server.server_close()
