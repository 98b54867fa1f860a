"""The official SDK, whose connection is cut in the middle of a stream, goes on by itself without a gap."""

from __future__ import annotations

import asyncio
from typing import Any

from langgraph_sdk import get_client

from tests.api.graphs import Ticking
from tests.api.serving import serving


class Cutter:
    """A proxy whose connections a test cuts."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers += [writer, upstream_writer]
        await asyncio.gather(_pump(reader, upstream_writer), _pump(upstream_reader, writer))

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.transport.abort()


async def test_goes_on(database_url: str, temporal: str) -> None:
    ticking = Ticking()
    async with serving(database_url, temporal, {"graph": ticking.graph()}) as api:
        cutter = Cutter(int(api.url.rpartition(":")[2]))
        proxy = await asyncio.start_server(cutter.serve, "127.0.0.1", 0)
        port = proxy.sockets[0].getsockname()[1]
        async with proxy, get_client(url=f"http://127.0.0.1:{port}") as sdk:
            thread = await api.thread()
            ticks: list[Any] = []
            for number in range(3):
                ticking.ticks.put_nowait(number)
            async for part in sdk.runs.stream(thread, "graph", input={"n": 1}, stream_mode="custom"):
                if part.event == "custom":
                    ticks.append(part.data["tick"])
                    if part.data["tick"] == 2:
                        cutter.cut()
                        for number in (3, 4, 5, None):
                            ticking.ticks.put_nowait(number)
            assert ticks == [0, 1, 2, 3, 4, 5]
