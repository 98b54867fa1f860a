"""SIGKILL of the API process that has just recorded a turn: the client sends it again and gets the same turn, once."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

from adapter import faultpoints
from adapter.store import requests
from tests.processes import ROOT, faulty
from tests.servers import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
PROJECT = ROOT / "tests" / "project" / "langgraph.json"


async def test_the_same_request_finds_the_turn(database_url: str, temporal: str, tmp_path: Path) -> None:
    async with faulty(database_url, temporal, tmp_path, config=PROJECT) as it:
        worker = it.workers.start()
        port = free_port()
        api = it.workers.start_api(port)
        await asyncio.gather(worker.ready(), api.ready())
        thread = str(uuid.uuid4())

        async def send() -> dict[str, Any]:
            body = {"assistant_id": "sequence", "input": {"mark": thread}, "if_not_exists": "create"}
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http:
                path = f"/threads/{thread}/runs"
                answered = await http.post(path, json=body, headers={"Idempotency-Key": "first"})
                return answered.raise_for_status().json()

        it.faults.arm(faultpoints.AFTER_RECORD)
        with pytest.raises(httpx.TransportError):
            await send()
        assert await api.ended() == -9
        [recorded] = await requests.list_turns(it.stack.pool, thread, status=None, limit=10, offset=0)
        assert recorded["status"] == "pending"

        await it.workers.start_api(port).ready()
        assert (await send())["run_id"] == str(recorded["turn_id"])
        assert (await it.stack.ended(str(recorded["turn_id"])))["status"] == "success"
        assert (await send())["run_id"] == str(recorded["turn_id"])
        assert it.count("effects", "charge") == 1
        assert len(await requests.list_turns(it.stack.pool, thread, status=None, limit=10, offset=0)) == 1
