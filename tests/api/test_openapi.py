"""What `/openapi.json` says is true: generated requests, good and bad, get answers as it describes, and never a 500."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from api.answers import ANSWERS
from tests.api.fuzzing import Known, apart, fuzz_apart, name_of
from tests.api.graphs import asking, failing, steps
from tests.api.serving import Serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
GRAPHS = {"graph": steps("a"), "asking": asking(), "failing": failing()}
SETTINGS = {"queued_turns": 5}
# Not in the document, or without an end.
LEFT_OUT = ("GET /", "HEAD /", "HEAD /ok", "HEAD /info", "GET /threads/{thread_id}/progress/stream")


@pytest.fixture(scope="module")
def sender() -> Iterator[ProcessPoolExecutor]:
    with apart() as process:
        yield process


@pytest.mark.parametrize("route", sorted(set(ANSWERS) - set(LEFT_OUT)), ids=name_of)
async def test_answers_are_as_documented(api: Serving, sender: ProcessPoolExecutor, route: str) -> None:
    document = (await api.http.get("/openapi.json")).json()
    paths = await _there(api)
    known = Known(tuple(paths), tuple(GRAPHS))
    sent = sender.submit(fuzz_apart, document, api.url, route, known)
    assert await asyncio.wrap_future(sent) > 0


async def _there(api: Serving) -> list[dict[str, str]]:
    """Returns what paths may name: threads that ended, wait and failed, with their runs, and one of each assistant."""
    made: list[dict[str, str]] = []
    for graph in GRAPHS:
        thread = await api.thread()
        await api.wait(thread, graph, input={"trail": ["x"]})
        [run] = (await api.http.get(f"/threads/{thread}/runs")).json()
        state = (await api.http.get(f"/threads/{thread}/state")).json()
        made.append(
            {
                "thread_id": thread,
                "run_id": str(run["run_id"]),
                "checkpoint_id": str(state["checkpoint_id"]),
                "assistant_id": str(run["assistant_id"]),
            }
        )
    return made
