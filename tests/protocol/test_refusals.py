"""Every refusal: request, status and text. Where the text is the server's own, a pattern says what it must name.

The reference validates with a JSON schema and quotes it; ours says `where: what` in one line. Its clients show the text
and do not read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.api.graphs import Held
from tests.api.serving import Serving, fresh
from tests.protocol.cases import HI, filled
from tests.protocol.graphs import GRAPHS

NO_JSON = "Invalid JSON in request body"
NO_THREAD = "Thread with ID {other} not found"
NEITHER = "Thread or assistant not found."
NOT_A_THREAD_ID = "Invalid thread ID: must be a UUID"
BUSY = "Thread is already running a task. Wait for it to finish or choose a different multitask strategy."
NOT_RUNNING = (
    "No matching runs to cancel. Please verify the thread ID and run IDs are correct, and the runs haven't been "
    "deleted or completed."
)
NO_ASSISTANT = (
    "Invalid assistant: 'nope'. Must be either:\n- A valid assistant UUID, or\n- One of the registered graphs: "
    + ", ".join(GRAPHS)
)
NO_GRAPH = "Graph 'nope' not found. Expected one of: " + str(list(GRAPHS))
RUN = {"assistant_id": "agent", "input": HI}


@dataclass(frozen=True)
class Refusal:
    """A request and its refusal.

    Attributes:
        request: method and path; `{thread}` has a finished run `{run}`, `{busy}` a running one, `{other}` is unknown,
            `{assistant}` exists.
        body: JSON, or text that is none.
        status: of the answer.
        detail: its text, or what stands in it.
    """

    request: str
    body: Any
    status: int
    detail: str | tuple[str, ...]


PATHS = [
    Refusal("GET /nope", None, 404, "Not Found"),
    Refusal("PUT /threads", None, 405, "Method Not Allowed"),
    Refusal("GET /threads/not-a-uuid", None, 422, NOT_A_THREAD_ID),
    # The reference answers 400 with "badly formed hexadecimal UUID string" here, and 422 with our text elsewhere.
    Refusal("POST /threads/abc/runs/stream", RUN, 422, NOT_A_THREAD_ID),
    Refusal("GET /threads/{thread}/runs/xyz", None, 422, "Invalid run ID: must be a UUID"),
]

THREADS = [
    Refusal("POST /threads", None, 422, NO_JSON),
    Refusal("POST /threads", "{bad", 422, NO_JSON),
    Refusal("POST /threads", {"thread_id": "not-a-uuid"}, 422, NOT_A_THREAD_ID),
    Refusal("POST /threads", {"if_exists": "zzz"}, 422, ("if_exists", "raise", "do_nothing")),
    Refusal("POST /threads", {"thread_id": "{thread}"}, 409, "Thread with ID {thread} already exists"),
    Refusal("GET /threads/{other}", None, 404, NO_THREAD),
    # "Not Found" in the reference; the thread's id says more.
    Refusal("PATCH /threads/{other}", {"metadata": {"k": "v"}}, 404, NO_THREAD),
    Refusal("DELETE /threads/{other}", None, 404, NO_THREAD),
    # "Conflict" in the reference, with the same status.
    Refusal("POST /threads/{other}/copy", None, 409, NO_THREAD),
    Refusal("POST /threads/search", None, 422, NO_JSON),
    Refusal("POST /threads/search", {"limit": 0}, 422, ("limit", "1")),
    Refusal("POST /threads/search", {"limit": 2000}, 422, ("limit", "1000")),
    Refusal("POST /threads/search", {"status": "nope"}, 422, ("status", "idle")),
]

STATES = [
    Refusal("GET /threads/{other}/state", None, 404, NO_THREAD),
    Refusal("POST /threads/{other}/state", {"values": {"answer": "x"}}, 404, NO_THREAD),
    Refusal("POST /threads/{fresh}/state", {"values": {"answer": "x"}}, 400, ("no", "graph")),
    Refusal("POST /threads/{thread}/state", {"values": {}, "as_node": "zzz"}, 400, "Node zzz does not exist"),
    Refusal("POST /threads/{busy}/state", {"values": {"answer": "x"}}, 409, ("{busy}", "in-flight runs")),
    Refusal("POST /threads/{other}/history", {"limit": 10}, 404, NO_THREAD),
    Refusal("POST /threads/{thread}/history", {"limit": 0}, 422, ("limit", "1")),
    Refusal("POST /threads/{thread}/history", None, 422, NO_JSON),
]

RUNS = [
    Refusal("POST /threads/{thread}/runs/stream", "{", 422, NO_JSON),
    Refusal("POST /threads/{thread}/runs/stream", [], 422, ("object",)),
    Refusal("POST /threads/{thread}/runs/stream", {"input": HI}, 422, ("assistant_id",)),
    Refusal("POST /threads/{thread}/runs/stream", {**RUN, "stream_mode": "zzz"}, 422, ("stream_mode",)),
    Refusal(
        "POST /threads/{thread}/runs/stream",
        {**RUN, "multitask_strategy": "zzz"},
        422,
        ("multitask", "reject"),
    ),
    Refusal(
        "POST /threads/{thread}/runs/stream",
        {**RUN, "interrupt_before": "nodeX"},
        422,
        ("interrupt_before",),
    ),
    Refusal(
        "POST /threads/{thread}/runs/wait",
        {**RUN, "context": {"a": 1}, "config": {"configurable": {"k": 1}}},
        400,
        ("Cannot specify both configurable and context.",),
    ),
    *(
        refusal
        for route in ("runs", "runs/stream", "runs/wait")
        for refusal in (
            Refusal(f"POST /threads/{{thread}}/{route}", {**RUN, "assistant_id": "nope"}, 422, NO_ASSISTANT),
            Refusal(f"POST /threads/{{thread}}/{route}", {**RUN, "assistant_id": "{other}"}, 404, NEITHER),
            Refusal(f"POST /threads/{{other}}/{route}", RUN, 404, NEITHER),
            Refusal(f"POST /threads/{{busy}}/{route}", {**RUN, "multitask_strategy": "reject"}, 409, BUSY),
        )
    ),
    Refusal("GET /threads/{thread}/runs/{other}", None, 404, "Not Found"),
    Refusal("GET /threads/{other}/runs", None, 404, NO_THREAD),
    Refusal("DELETE /threads/{thread}/runs/{other}", None, 404, "Run not found"),
    Refusal("POST /threads/{thread}/runs/{other}/cancel", None, 404, "No runs found to cancel."),
    Refusal("POST /threads/{thread}/runs/{run}/cancel?wait=0", None, 404, NOT_RUNNING),
    Refusal("POST /threads/{thread}/runs/{run}/cancel?wait=1", None, 404, NOT_RUNNING),
    # Checked before the run is looked for; the reference says 404 of an unknown run.
    Refusal("POST /threads/{busy}/runs/{other}/cancel?action=zzz", None, 422, ("action", "rollback")),
]

ASSISTANTS = [
    Refusal("POST /assistants/search", None, 422, NO_JSON),
    Refusal("POST /assistants/search", {"graph_id": "nope"}, 404, NO_GRAPH),
    Refusal("POST /assistants", {"graph_id": "nope"}, 404, NO_GRAPH),
    Refusal(
        "POST /assistants",
        {"graph_id": "agent", "assistant_id": "{assistant}"},
        409,
        "Assistant {assistant} already exists",
    ),
    Refusal("DELETE /assistants/{other}", None, 404, "Assistant with ID {other} not found"),
    Refusal("GET /assistants/{other}", None, 404, "Not Found"),
    Refusal("GET /assistants/{other}/graph", None, 404, "Not Found"),
    # A graph's name is an id here, too, which the reference refuses with the same words.
    Refusal("GET /assistants/nope", None, 422, "Invalid assistant ID: must be a UUID"),
    Refusal("GET /assistants/nope/graph", None, 422, "Invalid assistant ID: must be a UUID"),
]

STORE = [
    Refusal("PUT /store/items", {"namespace": ["a"], "key": "k", "value": "str"}, 422, ("value",)),
    Refusal(
        "PUT /store/items", {"namespace": [], "key": "k", "value": {}}, 400, "Namespace cannot be empty."
    ),
    # `{"error": …}` in the reference; ours is `{"detail": …}` as everywhere.
    Refusal("GET /store/items?namespace=users.u1", None, 400, "Key is required"),
    # Plain text in the reference; ours is JSON as everywhere.
    Refusal(
        "PUT /store/items",
        {"namespace": ["users.x"], "key": "k", "value": {}},
        422,
        "Namespace label 'users.x' must be a non-empty string without periods",
    ),
    Refusal("DELETE /runs/crons/{other}", None, 404, "Not Found"),
    Refusal("GET /runs/{other}", None, 404, "Not Found"),
]


async def _refused(api: Serving, names: Mapping[str, str], refusal: Refusal) -> None:
    method, path = filled(refusal.request, names).split(" ")
    sent: dict[str, Any] = {} if refusal.body is None else {"json": filled(refusal.body, names)}
    if isinstance(refusal.body, str):
        sent = {"content": refusal.body, "headers": {"content-type": "application/json"}}
    answered = await api.http.request(method, path, **sent)
    asked = f"{method} {path} {sent}"
    assert answered.headers["content-type"] == "application/json", asked
    body = answered.json()
    assert answered.status_code == refusal.status and list(body) == ["detail"], f"{asked}: {answered.text}"
    if isinstance(refusal.detail, str):
        assert body["detail"] == filled(refusal.detail, names), asked
    else:
        assert all(filled(word, names) in body["detail"] for word in refusal.detail), f"{asked}: {body}"


TABLES = {
    "paths": PATHS,
    "threads": THREADS,
    "states": STATES,
    "runs": RUNS,
    "assistants": ASSISTANTS,
    "store": STORE,
}


@pytest.mark.parametrize("table", TABLES)
async def test_each(api: Serving, held: Held, table: str) -> None:
    thread, busy = await api.thread(), await api.thread()
    await api.run(busy, "held", input={"trail": []})
    await held.started.wait()
    await api.wait(thread, "agent", input=HI)
    (run,) = (await api.http.get(f"/threads/{thread}/runs")).json()
    assistant = (await api.http.post("/assistants", json={"graph_id": "agent"})).json()["assistant_id"]
    names = {
        "thread": thread,
        "busy": busy,
        "fresh": await api.thread(),
        "other": fresh(),
        "run": run["run_id"],
        "assistant": assistant,
    }
    wrong: list[str] = []
    for refusal in TABLES[table]:
        try:
            await _refused(api, names, refusal)
        except AssertionError as exc:
            wrong.append(str(exc))
    held.go.set()
    assert not wrong, "\n".join(wrong)
