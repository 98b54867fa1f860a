"""Requests that are not what a server hopes for: never a 500, always one readable line."""

from __future__ import annotations

import random
from typing import Any

from tests.api.graphs import steps
from tests.api.serving import Serving, serving

GRAPHS = {"graph": steps("a")}

BODY = b'{"assistant_id":"graph","input":{"trail":["%s"]}}'


async def _post(api: Serving, url: str, content: bytes, kind: str = "application/json") -> tuple[int, Any]:
    answered = await api.http.post(url, content=content, headers={"content-type": kind})
    return answered.status_code, answered.json()


async def test_bodies(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, {"graph": steps("a")}, request_bytes=100_000) as api:
        thread = await api.thread()
        url = f"/threads/{thread}/runs/wait"
        invalid = (422, {"detail": "Invalid JSON in request body"})
        for content in (
            b"",
            b"{",
            b"\xff",
            BODY % b"\\ud800",
            BODY % b"\xed\xa0\x80",
            BODY % b"\x00",
            b'{"a":NaN}',
            b'{"a":1e999}',
            b"[" * 5000,
            b'{"assistant_id":"graph","input":' + b"[" * 1100 + b"]" * 1100 + b"}",
        ):
            assert await _post(api, url, content) == invalid, content[:40]
        for content, says in (
            (b"[]", "must be a JSON object"),
            (b"7", "must be a JSON object"),
            (BODY % b"a\\u0000b", "NUL"),
            (b'{"assistant_id":"graph","input":{"a\\u0000":1}}', "NUL"),
            (b'{"assistant_id":"graph","input":' + b"[" * 300 + b"]" * 300 + b"}", "levels deep"),
        ):
            status, body = await _post(api, url, content)
            assert (status, says in body["detail"]) == (422, True), content[:40]
        status, body = await _post(api, url, BODY % (b"x" * 100_001))
        assert (status, body) == (413, {"detail": "The request body is larger than 100000 bytes"})

        said = "\\u0000 \U0001f600 \u2028 \r\n"
        fine = (BODY % b"%s") % b"\\\\u0000 \\ud83d\\ude00 \\u2028 \\r\\n"
        assert await _post(api, url, fine, "text/plain") == (200, {"trail": [said, "a"]})
        deep: Any = "x"
        for _ in range(150):
            deep = [deep]
        assert await api.wait(thread, input={"answer": deep})


async def test_bodies_of_other_routes(api: Serving) -> None:
    thread = await api.thread()
    await api.wait(thread, input={"trail": ["x"]})
    routes = [
        "/threads",
        "/threads/search",
        "/threads/count",
        f"/threads/{thread}/state",
        f"/threads/{thread}/state/checkpoint",
        f"/threads/{thread}/history",
        "/assistants/search",
        "/assistants/count",
        "/runs",
    ]
    for route in routes:
        assert await _post(api, route, b"") == (422, {"detail": "Invalid JSON in request body"})
        for content in (
            b'{"metadata":{"a":"\\u0000"}}',
            b'{"checkpoint_id":"\\u0000","as_node":"\\u0000"}',
        ):
            status, _ = await _post(api, route, content)
            assert status == 422 or route.startswith("/assistants"), (route, content)


async def test_what_postgres_cannot_hold(api: Serving) -> None:
    """A key that is too long for an index, whatever the compression makes of it, and a lifetime that is no interval."""
    chosen = random.Random(1)
    long = "".join(chosen.choices("0123456789abcdef", k=20_000))
    for item in ({"namespace": ["a"], "key": long}, {"namespace": [long], "key": "k"}, {"ttl": 1e-9}):
        body: dict[str, Any] = {"namespace": ["a"], "key": "k", "value": {}, **item}
        refused = await api.http.put("/store/items", json=body)
        assert (refused.status_code, refused.json()) == (
            422,
            {"detail": "The request holds a value that PostgreSQL cannot store"},
        )


async def test_an_input_that_a_reducer_does_not_take(api: Serving) -> None:
    """Its run fails; the thread is as readable as before, and goes on."""
    thread = await api.thread()
    await api.wait(thread, input={"trail": ["x"]})
    failed = await api.wait(thread, input={"trail": 7})
    assert failed["__error__"]["error"] == "TypeError"
    for url in (f"/threads/{thread}", f"/threads/{thread}/state"):
        read = await api.http.get(url)
        assert (read.status_code, read.json()["values"]) == (200, {"trail": ["x", "a"]})
    edited = await api.http.post(
        f"/threads/{thread}/state", json={"values": {"trail": ["e"]}, "as_node": "a"}
    )
    assert edited.status_code == 200
    assert await api.wait(thread, input={"trail": ["y"]}) == {"trail": ["x", "a", "e", "y", "a"]}


async def test_paths(api: Serving) -> None:
    thread = await api.thread()
    await api.wait(thread, input={"trail": ["x"]})
    for path, status, detail in (
        ("/nope", 404, "Not Found"),
        ("/threads/not-a-uuid", 422, "Invalid thread ID: must be a UUID"),
        ("/threads/abc/runs", 422, "Invalid thread ID: must be a UUID"),
        (f"/threads/{thread}/runs/xyz", 422, "Invalid run ID: must be a UUID"),
        (f"/threads/{thread}/runs/xyz/stream", 422, "Invalid run ID: must be a UUID"),
        (
            f"/threads/{thread}/state/a%00b",
            422,
            "The request holds a NUL character, which cannot be stored",
        ),
        (
            f"/threads/{thread}/runs?status=%00",
            422,
            "The request holds a NUL character, which cannot be stored",
        ),
        (f"/threads/{thread}/runs?limit=x", 422, None),
        (f"/threads/{thread}/state?subgraphs=x", 422, None),
    ):
        answered = await api.http.get(path)
        assert answered.status_code == status, path
        assert isinstance(answered.json()["detail"], str)
        assert detail is None or answered.json() == {"detail": detail}
    for path in (f"/threads/{thread}/state/%FF%FE", f"/threads/{thread}/history?before=%FF%27"):
        assert (await api.http.get(path)).status_code == 200
    wrong = await api.http.put("/threads")
    assert (wrong.status_code, wrong.json()) == (405, {"detail": "Method Not Allowed"})
    assert wrong.headers["allow"] == "POST"
    slash = await api.http.post("/threads/", json={})
    assert (slash.status_code, slash.headers["location"]) == (307, f"{api.url}/threads")
