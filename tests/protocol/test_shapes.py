"""The keys of what events hold, to the last one: clients read some of them without asking whether they are there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.api.serving import Serving
from tests.protocol.cases import ASKS, FAILS, events_of

MESSAGE = "additional_kwargs content id name response_metadata type"
AI = f"{MESSAGE} invalid_tool_calls tool_calls usage_metadata"
# The server's own name, address and plan (`langgraph_host`, `langgraph_api_url`, `langgraph_api_version`,
# `langgraph_plan`) are left out on purpose: they would be untrue.
RUN = "assistant_id created_by graph_id langgraph_version run_attempt run_id"
PLACE = "langgraph_checkpoint_ns langgraph_node langgraph_path langgraph_step langgraph_triggers"
# Nor is there anything to say in `user_id`, `langgraph_auth_user`, `langgraph_request_id` when nobody was asked.
CONFIG = "assistant_id checkpoint_id checkpoint_ns graph_id run_id thread_id"
CHECKPOINT = "config metadata next parent_config tasks values"
TASK = "id input metadata name triggers"
RESULT = "error id interrupts name result"


def _has(data: Mapping[str, Any], *keys: str) -> bool:
    return sorted(data) == sorted(" ".join(keys).split())


async def _of(api: Serving, graph: str, mode: str, **body: Any) -> list[tuple[str, Any]]:
    thread = await api.thread()
    events = await events_of(api, thread, graph, {"stream_mode": mode, "stream_subgraphs": True, **body})
    return [(event.name, event.data) for event in events]


async def test_metadata_and_error(api: Serving) -> None:
    (_, metadata), *_, (name, error) = await _of(api, "agent", "updates", input=FAILS)
    assert name == "error" and error == {"error": "ValueError", "message": "boom in plan"}
    assert _has(metadata, "run_id attempt")


async def test_tokens(api: Serving) -> None:
    _, *events = await _of(api, "agent", "messages-tuple")
    assert len(events) == 3
    for _, (chunk, metadata) in events:
        assert _has(chunk, AI, "chunk_position tool_call_chunks")
        assert chunk["id"].startswith("lc_run--")
        assert _has(
            metadata,
            *(RUN, PLACE, "thread_id checkpoint_ns lc_versions ls_integration ls_model_type ls_provider"),
        )
    assert [chunk["chunk_position"] for _, (chunk, _) in events] == [None, None, "last"]
    assert len({chunk["id"] for _, (chunk, _) in events}) == 1


async def test_whole_messages(api: Serving) -> None:
    events = await _of(api, "tools", "messages-tuple")
    (_, (call, metadata)), (_, (tool, _)) = (e for e in events[1:] if e[1][0]["type"] != "AIMessageChunk")
    assert _has(call, AI) and _has(tool, MESSAGE, "artifact status tool_call_id")
    assert call["tool_calls"] == [
        {"name": "get_weather", "args": {"city": "Paris"}, "id": "call_1", "type": "tool_call"}
    ]
    assert _has(metadata, RUN, PLACE, "thread_id ls_integration")


async def test_messages_so_far(api: Serving) -> None:
    _, (_, announced), *partial = await _of(api, "agent", "messages")
    ((message_id, told),) = announced.items()
    assert _has(told, "metadata") and told["metadata"]["langgraph_node"] == "call_model"
    for _, (message,) in partial:
        assert _has(message, AI) and message["id"] == message_id and message["type"] == "ai"


async def test_tasks(api: Serving) -> None:
    _, *events = await _of(api, "agent", "tasks", input=ASKS)
    for _, data in events:
        if "triggers" in data:
            assert _has(data, TASK) and _has(data["metadata"], RUN)
            assert data["triggers"] == [f"branch:to:{data['name']}"]
        else:
            assert _has(data, RESULT)
    asked = events[-1][1]
    assert (asked["error"], asked["result"]) == (None, {})
    assert _has(asked["interrupts"][0], "id value response_schema")


async def test_checkpoints(api: Serving) -> None:
    _, *events = await _of(api, "parent", "checkpoints")
    parents: dict[str, Any] = {}
    for name, data in events:
        assert _has(data, CHECKPOINT) and _has(data["metadata"], "parents source step")
        inside = name != "checkpoints"
        configurable = data["config"]["configurable"]
        assert _has(configurable, CONFIG, "checkpoint_map" if inside else "")
        assert configurable["checkpoint_ns"] == name.partition("|")[2]
        parent = data["parent_config"]
        assert (parent and parent["configurable"]["checkpoint_id"]) == parents.get(name)
        parents[name] = configurable["checkpoint_id"]
        for task in data["tasks"]:
            assert _has(task, "id interrupts name state")
            ns = f"child:{task['id']}"
            thread = configurable["thread_id"]
            expected = {"configurable": {"thread_id": thread, "checkpoint_ns": ns}}
            assert task["state"] == (expected if task["name"] == "child" else None)


async def test_debug(api: Serving) -> None:
    _, *events = await _of(api, "parent", "debug")
    kinds = {"checkpoint": f"{CHECKPOINT} checkpoint parent_checkpoint", "task": TASK, "task_result": RESULT}
    for name, data in events:
        payload = data["payload"]
        assert _has(data, "payload step timestamp type") and _has(payload, kinds[data["type"]])
        if data["type"] != "checkpoint":
            continue
        inside = "checkpoint_map" if name != "debug" else ""
        assert _has(payload["checkpoint"], "checkpoint_id checkpoint_ns thread_id", inside)
        of_config = payload["config"]["configurable"]
        assert payload["checkpoint"].items() <= of_config.items()
        assert (payload["parent_checkpoint"] is None) == (payload["parent_config"] is None)
        for task in payload["tasks"]:
            addressed = "checkpoint" if task["name"] == "child" else "state"
            assert _has(task, "id interrupts name", addressed)


async def test_questions(api: Serving) -> None:
    *_, (_, update), (_, values) = [
        *(await _of(api, "agent", "updates", input=ASKS)),
        *(await _of(api, "agent", "values", input=ASKS))[-1:],
    ]
    for asked in (*update["__interrupt__"], *values["__interrupt__"]):
        assert _has(asked, "id value response_schema") and asked["response_schema"] is None
