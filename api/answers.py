"""Owns the table of what each route answers, for the OpenAPI document (`api/documented.py`).

What follows from a route's rule, path and body is not in the table: see `refusals`. A route without an entry is not
documented truthfully, so the application is not built with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from api.access import PUBLIC, RULES
from api.schemas import answers as a


@dataclass(frozen=True, slots=True)
class Answers:
    """What a route answers.

    Attributes:
        ok: the type of a 200's JSON; None when there is no 200.
        refusals: statuses with `{"detail": …}`, besides those that `refusals` adds.
        empty: statuses of answers without a body.
        stream: whether a 200 is server-sent events.
        selected: whether the query or the body names the fields that objects have.
    """

    ok: Any = None
    refusals: tuple[int, ...] = ()
    empty: tuple[int, ...] = ()
    stream: bool = False
    selected: bool = False


_STARTS: Final = (400, 404, 409, 429)
_ON_THREAD: Final = (404,)
_STREAMS_NEW: Final = Answers(stream=True, refusals=_STARTS)
_WAITS: Final = Answers(Any, _STARTS)
_STARTED: Final = Answers(a.Run, _STARTS)
_STATE: Final = Answers(a.ThreadState, _ON_THREAD)
_HISTORY: Final = Answers(list[a.ThreadState], _ON_THREAD)
_SUBGRAPHS: Final = Answers(dict[str, a.SubgraphSchemas], (404,))

ANSWERS: Final[Mapping[str, Answers]] = {
    "GET /": Answers(a.Ok, (503,)),
    "HEAD /": Answers(a.Ok, (503,)),
    "GET /ok": Answers(a.Ok, (503,)),
    "HEAD /ok": Answers(a.Ok, (503,)),
    "GET /info": Answers(a.Info),
    "HEAD /info": Answers(a.Info),
    "GET /health/started": Answers(a.Started),
    "GET /health/live": Answers(a.Healthy),
    "GET /health/ready": Answers(a.Healthy, (503,)),
    "POST /threads": Answers(a.Thread, (400, 404, 409)),
    "POST /threads/search": Answers(list[a.Thread], selected=True),
    "POST /threads/count": Answers(int),
    "GET /threads/abandoned": Answers(list[a.Abandoned]),
    "GET /threads/{thread_id}": Answers(a.Thread, (404,)),
    "PATCH /threads/{thread_id}": Answers(a.Thread, (404,), empty=(204,)),
    "DELETE /threads/{thread_id}": Answers(None, (404,), empty=(204,)),
    "POST /threads/{thread_id}/copy": Answers(a.Thread, (404, 409)),
    "POST /threads/prune": Answers(a.Pruned),
    "GET /threads/{thread_id}/effects": Answers(list[a.Effect], (404,)),
    "GET /threads/{thread_id}/progress": Answers(a.Progress, (404,)),
    "GET /threads/{thread_id}/progress/stream": Answers(stream=True, refusals=(404,)),
    "GET /threads/{thread_id}/state": _STATE,
    "GET /threads/{thread_id}/state/{checkpoint_id}": _STATE,
    "POST /threads/{thread_id}/state/checkpoint": _STATE,
    "POST /threads/{thread_id}/state": Answers(a.Edited, (400, 404, 409)),
    "GET /threads/{thread_id}/history": _HISTORY,
    "POST /threads/{thread_id}/history": _HISTORY,
    "POST /threads/{thread_id}/runs": _STARTED,
    "POST /threads/{thread_id}/runs/stream": _STREAMS_NEW,
    "POST /threads/{thread_id}/runs/wait": _WAITS,
    "GET /threads/{thread_id}/runs": Answers(list[a.Run], (404,), selected=True),
    "GET /threads/{thread_id}/runs/{run_id}": Answers(a.Run, (404,)),
    "DELETE /threads/{thread_id}/runs/{run_id}": Answers(None, (404,), empty=(204,)),
    "GET /threads/{thread_id}/runs/{run_id}/join": Answers(Any, (404,)),
    "GET /threads/{thread_id}/runs/{run_id}/stream": Answers(stream=True),
    "POST /threads/{thread_id}/runs/{run_id}/cancel": Answers(a.JsonObject, (404,), empty=(202,)),
    "POST /runs": _STARTED,
    "POST /runs/stream": _STREAMS_NEW,
    "POST /runs/wait": _WAITS,
    "POST /runs/batch": Answers(list[a.Run], _STARTS),
    "POST /runs/cancel": Answers(None, (404,), empty=(204,)),
    "GET /runs/{run_id}/stream": Answers(stream=True, refusals=(404,)),
    "POST /assistants": Answers(a.Assistant, (400, 404, 409)),
    "POST /assistants/search": Answers(list[a.Assistant], (404,), selected=True),
    "POST /assistants/count": Answers(int, (404,)),
    "GET /assistants/{assistant_id}": Answers(a.Assistant, (404,)),
    "PATCH /assistants/{assistant_id}": Answers(a.Assistant, (400, 404, 409)),
    "DELETE /assistants/{assistant_id}": Answers(None, (404,), empty=(204,)),
    "POST /assistants/{assistant_id}/versions": Answers(list[a.AssistantVersion], (404,)),
    "POST /assistants/{assistant_id}/latest": Answers(a.Assistant, (404,)),
    "GET /assistants/{assistant_id}/graph": Answers(a.Drawing, (404,)),
    "GET /assistants/{assistant_id}/schemas": Answers(a.GraphSchemas, (404,)),
    "GET /assistants/{assistant_id}/subgraphs": _SUBGRAPHS,
    "GET /assistants/{assistant_id}/subgraphs/{namespace}": _SUBGRAPHS,
    "PUT /store/items": Answers(None, (400,), empty=(204,)),
    "GET /store/items": Answers(a.Item | None, (400,)),
    "DELETE /store/items": Answers(None, (400,), empty=(204,)),
    "POST /store/items/search": Answers(a.FoundItems),
    "POST /store/namespaces": Answers(a.FoundNamespaces),
}


def refusals(route: str, *, has_body: bool) -> set[int]:
    """Returns the statuses of a route's refusals.

    Any route refuses a path or query that it does not understand. All but the public ones need the database, and refuse
    whom the auth handler does not let in.

    Args:
        route: as "METHOD path".
        has_body: whether it reads one, which may be too large.
    """
    found = {*ANSWERS[route].refusals, 422}
    if RULES[route] is not PUBLIC:
        found |= {401, 403, 503}
    if has_body:
        found.add(413)
    return found
