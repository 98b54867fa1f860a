"""The long-term store over HTTP: items, filters, namespaces, refusals."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from tests.api.graphs import steps
from tests.api.serving import Serving, serving

GRAPHS = {"graph": steps("plan")}


async def _keys(api: Serving, **body: Any) -> list[str]:
    answered = await api.http.post("/store/items/search", json=body)
    assert answered.status_code == 200, answered.text
    return sorted("/".join([*item["namespace"], item["key"]]) for item in answered.json()["items"])


async def test_items(api: Serving) -> None:
    store = api.sdk.store
    await store.put_item(["users", "u1"], "k1", {"name": "Ann", "n": 1})
    item = cast("Any", await store.get_item(["users", "u1"], "k1"))
    assert item == {
        "namespace": ["users", "u1"],
        "key": "k1",
        "value": {"name": "Ann", "n": 1},
        "created_at": item["created_at"],
        "updated_at": item["updated_at"],
    }
    assert item["created_at"].endswith("+00:00")
    await store.put_item(["users", "u1"], "k1", {"name": "Anna"}, index=False)
    again = cast("Any", await store.get_item(["users", "u1"], "k1"))
    assert (again["value"], again["created_at"]) == ({"name": "Anna"}, item["created_at"])
    assert again["updated_at"] > item["updated_at"]
    as_list = await api.http.get("/store/items?namespace=users&namespace=u1&key=k1")
    assert as_list.json() == again
    for _ in range(2):
        await store.delete_item(["users", "u1"], "k1")
    nothing = await api.http.get("/store/items?namespace=users.u1&key=k1")
    assert (nothing.status_code, nothing.json()) == (200, None)


async def test_search(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, GRAPHS) as api:
        for user, key, value in (
            ("u1", "k1", {"name": "Ann", "n": 1}),
            ("u1", "k2", {"name": "Ann", "n": 5}),
            ("u2", "k1", {"name": "Bob", "n": 3}),
        ):
            await api.sdk.store.put_item(["users", user], key, value)
        await api.sdk.store.put_item(["usersother"], "k1", {"name": "Ann"})
        assert await _keys(api, namespace_prefix=["users"]) == ["users/u1/k1", "users/u1/k2", "users/u2/k1"]
        assert len(await _keys(api)) == 4
        assert await _keys(api, namespace_prefix=["users"], filter={"name": "Ann"}) == [
            "users/u1/k1",
            "users/u1/k2",
        ]
        assert await _keys(api, namespace_prefix=["users"], filter={"n": {"$gt": 2}}) == [
            "users/u1/k2",
            "users/u2/k1",
        ]
        pages = [await _keys(api, namespace_prefix=["users"], limit=2, offset=at) for at in (0, 2)]
        assert [len(page) for page in pages] == [2, 1] and not set(pages[0]) & set(pages[1])
        found = await api.sdk.store.search_items(["users"], query="ann")
        assert len(found["items"]) == 3
        assert cast("Any", found["items"][0])["score"] is None


async def test_namespaces(database_url: str, temporal: str) -> None:
    async with serving(database_url, temporal, GRAPHS) as api:
        for namespace in (["u1"], ["users", "u1"], ["users", "u2", "mail"], ["users", "u2", "notes"]):
            await api.sdk.store.put_item(namespace, "k", {})
        listed: list[tuple[dict[str, Any], list[list[str]]]] = [
            ({}, [["u1"], ["users", "u1"], ["users", "u2", "mail"], ["users", "u2", "notes"]]),
            ({"prefix": ["users"], "max_depth": 2}, [["users", "u1"], ["users", "u2"]]),
            ({"suffix": ["u1"]}, [["u1"], ["users", "u1"]]),
            ({"prefix": ["users", "*", "notes"]}, [["users", "u2", "notes"]]),
            ({"limit": 1, "offset": 1}, [["users", "u1"]]),
        ]
        for body, expected in listed:
            answered = await api.http.post("/store/namespaces", json=body)
            assert (answered.status_code, answered.json()) == (200, {"namespaces": expected})
        assert (await api.sdk.store.list_namespaces(prefix=["u1"]))["namespaces"] == [["u1"]]


async def test_refusals(api: Serving) -> None:
    item: dict[str, Any] = {"namespace": ["a"], "key": "k", "value": {}}
    dotted = "Namespace label 'users.x' must be a non-empty string without periods"
    refused: list[tuple[str, str, Any, int, str]] = [
        ("PUT", "/store/items", {**item, "namespace": ["users.x"]}, 422, dotted),
        ("PUT", "/store/items", {**item, "namespace": []}, 400, "Namespace cannot be empty."),
        (
            "PUT",
            "/store/items",
            {**item, "namespace": [""]},
            422,
            "Namespace label '' must be a non-empty string without periods",
        ),
        ("PUT", "/store/items", {**item, "value": "str"}, 422, "value: "),
        ("PUT", "/store/items", {**item, "key": ""}, 422, "key: "),
        ("PUT", "/store/items", {**item, "namespace": "a"}, 422, "namespace: "),
        ("PUT", "/store/items", {**item, "namespace": ["langgraph"]}, 422, "first label"),
        ("PUT", "/store/items", {**item, "value": {"a": "\x00"}}, 422, "NUL"),
        ("PUT", "/store/items", {**item, "ttl": 0}, 422, "ttl: "),
        ("GET", "/store/items?namespace=users.u1", None, 400, "Key is required"),
        ("GET", "/store/items?key=k", None, 400, "Namespace cannot be empty."),
        ("DELETE", "/store/items", {"namespace": ["a"]}, 422, "key: "),
        ("DELETE", "/store/items", {"namespace": ["users.x"], "key": "k"}, 422, dotted),
        ("POST", "/store/items/search", {"namespace_prefix": ["users.x"]}, 422, dotted),
        ("POST", "/store/items/search", {"filter": {"n": {"$nope": 1}}}, 422, "$nope"),
        ("POST", "/store/items/search", {"limit": 0}, 422, "limit: "),
        ("POST", "/store/namespaces", {"max_depth": 0}, 422, "max_depth: "),
    ]
    for method, path, body, status, says in refused:
        answered = await api.http.request(method, path, json=body)
        assert answered.status_code == status, (method, path, body, answered.text)
        assert says in answered.json()["detail"], answered.text


async def test_one_clients_mistake_is_not_anothers(api: Serving) -> None:
    await api.sdk.store.put_item(["a"], "k", {})
    bad, good = {"filter": {"n": {"$nope": 1}}}, {"namespace_prefix": ["a"]}
    answered = await asyncio.gather(
        *(api.http.post("/store/items/search", json=body) for body in [bad, good] * 20)
    )
    assert [a.status_code for a in answered] == [422, 200] * 20
