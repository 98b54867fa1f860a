"""Plays one cell of the fault matrix on long-lived processes and compares it with the undisturbed playing."""

from __future__ import annotations

import asyncio
import contextlib
import random
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

from adapter import faultpoints
from adapter.store import requests
from tests.api.serving import Event, Serving, first_events, in_front_of, parse
from tests.faults.scenarios import SCENARIOS, Play, Scenario
from tests.happened import normal, normal_name, normal_state, same_events
from tests.processes import ROOT, Faulty, Process, faulty
from tests.proxy import Proxy, proxy, to_postgres
from tests.servers import Postgres

Act = Literal[
    "kill",
    "freeze",
    # The rest happens while the process stands still at the point, so that it meets it right there.
    "cut postgres",
    "cut temporal",
    "hang postgres",
    "lose temporal",
    "lose both",
    "crash postgres",
]
# `messages` and `custom` events of an attempt that was lost are taken back (FR-26); all others are stored once.
MODES = ["values", "updates", "tasks", "checkpoints", "debug"]
POINTS = tuple(value for name, value in vars(faultpoints).items() if name.isupper() and name[0] != "_")
NEVER = 1_000_000
# A superstep's writes are committed in as many transactions as it happens to take.
BATCHED = (faultpoints.BEFORE_CHECKPOINT, faultpoints.IN_CHECKPOINT, faultpoints.AFTER_CHECKPOINT)


@dataclass(frozen=True)
class Cell:
    """One cell of the matrix."""

    point: str
    act: Act
    scenario: str

    def __str__(self) -> str:
        return f"{self.scenario}, {self.act} at {self.point}"


@dataclass(frozen=True)
class Told:
    """What one turn told: its row's status, its log, what the client that stayed saw, what the one that was cut saw."""

    status: str
    log: list[tuple[str, Any]]
    stayed: list[Event]
    rejoined: list[Event]


@dataclass
class Played:
    """What a playing left behind.

    Attributes:
        turns: what each turn told.
        state: the thread's final state.
        checkpoints: per namespace, how often each (source, step) was stored.
        acts: how often the provider acted, by kind and parameters.
        attempts: how often it was asked to.
        hits: per turn, how often each fault point was reached.
    """

    turns: list[Told] = field(default_factory=list[Told])
    state: Any = None
    checkpoints: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    acts: Counter[str] = field(default_factory=Counter[str])
    attempts: Counter[str] = field(default_factory=Counter[str])
    hits: list[Mapping[str, int]] = field(default_factory=list[Mapping[str, int]])


@dataclass(frozen=True)
class Links:
    """A worker's proxies."""

    postgres: Proxy
    temporal: Proxy


class Matrix:
    """Two workers, which are replaced when they are killed, the provider, and the API in front of them.

    Each worker reaches the servers through proxies of its own.
    """

    def __init__(
        self, it: Faulty, api: Serving, folder: Path, seed: str, proxies: AsyncExitStack, postgres: Postgres
    ) -> None:
        self.it = it
        self.api = api
        self.folder = folder
        self.seed = seed
        self.postgres = postgres
        self.links: dict[int, Links] = {}
        self._proxies = proxies
        self._undisturbed: dict[str, Played] = {}
        self._judged: list[tuple[Play, Scenario, Played, str]] = []

    async def start_worker(self) -> Process:
        """Starts a worker."""
        given = self.it.workers.environment
        postgres, url = await self._proxies.enter_async_context(to_postgres(given["DATABASE_URL"]))
        port = int(given["TEMPORAL_ADDRESS"].rpartition(":")[2])
        temporal = await self._proxies.enter_async_context(proxy(port))
        worker = self.it.workers.start(DATABASE_URL=url, TEMPORAL_ADDRESS=f"127.0.0.1:{temporal.port}")
        self.links[worker.pid] = Links(postgres, temporal)
        return worker

    async def judge(self, cell: Cell) -> None:
        """Plays a cell and asserts that it left what the undisturbed playing left."""
        scenario = SCENARIOS[cell.scenario]
        expected = await self.undisturbed(cell.scenario)
        chosen = random.Random(f"{self.seed}, {cell}")
        turn = chosen.choice([n for n, hits in enumerate(expected.hits) if hits[cell.point]])
        most = expected.hits[turn][cell.point]
        hit = chosen.randint(1, max(1, most * 2 // 3) if cell.point in BATCHED else most)
        every = chosen.randint(1, 5)
        where = f"{cell}, turn {turn + 1}, hit {hit} of {most}, a client cut after every {every}, seed {self.seed}"
        print(where)
        play = self._play()
        played = await self._run(play, scenario, every, Fault(self, cell, turn, hit))
        compare(played, expected, scenario, where)
        self._judged.append((play, scenario, played, where))

    async def undisturbed(self, name: str) -> Played:
        """Returns what a playing without any fault leaves; played once."""
        if name not in self._undisturbed:
            played = await self._run(self._play(), SCENARIOS[name], 3, None)
            compare(played, played, SCENARIOS[name], f"{name}, undisturbed")
            self._undisturbed[name] = played
        return self._undisturbed[name]

    async def nothing_came_late(self) -> None:
        """Asserts that what every cell left is still the same: no stale attempt wrote after it was judged."""
        for play, scenario, before, where in self._judged:
            after = Played()
            runs = (await self.api.http.get(f"/threads/{play.thread}/runs")).json()
            for run, told in zip(reversed(runs), before.turns, strict=True):
                assert (run["status"], await self.it.stack.events(run["run_id"])) == (
                    told.status,
                    told.log,
                ), where
            await self._look(play, scenario, after)
            assert (after.state, after.checkpoints) == (before.state, before.checkpoints), where
            assert (after.acts, after.attempts) == (before.acts, before.attempts), where

    def _play(self) -> Play:
        thread = str(uuid.uuid4())
        return Play(self.it, self.api, thread, self.folder / thread)

    # ------------------------------------------------------------ one playing

    async def _run(self, play: Play, scenario: Scenario, every: int, fault: Fault | None) -> Played:
        played = Played()
        await requests.create_thread(self.it.stack.pool, play.thread, {})
        if scenario.at_once:
            self._arm(fault)
            clients = [await Client.send(play, scenario, turn, every) for turn in scenario.turns]
            await self._finish(play, scenario, clients, fault, played)
        else:
            for number, turn in enumerate(scenario.turns):
                now = fault if fault is None or fault.turn == number else None
                if fault is None or now is not None:
                    self._arm(now)
                client = await Client.send(play, scenario, turn, every)
                await self._finish(play, scenario, [client], now, played)
        await self._look(play, scenario, played)
        return played

    def _arm(self, fault: Fault | None) -> None:
        """Arms the fault; without one, all points for a hit that never comes, so that hits are counted."""
        if fault is not None:
            action = "kill" if fault.cell.act == "kill" else "stop"
            self.it.faults.arm(fault.cell.point, action, fault.hit)
            return
        for point in POINTS:
            self.it.faults.arm(point, "kill", NEVER)

    async def _finish(
        self,
        play: Play,
        scenario: Scenario,
        clients: Sequence[Client],
        fault: Fault | None,
        played: Played,
    ) -> None:
        if scenario.meanwhile is not None:
            await scenario.meanwhile(play, clients[0].run)
        if fault is not None:
            await fault.happens(play, clients[-1])
        for client in clients:
            played.turns.append(await client.told(self.it))
        await play.closed()
        if fault is not None:
            await fault.passes(play)
        else:
            hits = {point: self.it.faults.hits(point) for point in POINTS}
            played.hits.append(hits)
        for point in POINTS:
            self.it.faults.clear(point)

    async def _look(self, play: Play, scenario: Scenario, played: Played) -> None:
        """Notes what the playing left: in LangGraph's tables, and at the provider."""
        played.state = normal_state(await self.it.stack.state(scenario.graph, play.thread))
        saver = AsyncPostgresSaver(self.it.stack.pool)  # type: ignore[arg-type]
        children: Counter[tuple[str, str | None]] = Counter()
        async for one in saver.alist({"configurable": {"thread_id": play.thread}}):
            ns = str(one.config.get("configurable", {})["checkpoint_ns"])
            parent = (one.parent_config or {}).get("configurable", {}).get("checkpoint_id")
            children[(ns, parent)] += 1
            place = (normal_name(ns), f"{one.metadata.get('source')} {one.metadata.get('step')}")
            played.checkpoints[place] += 1
        forks = {place: count for place, count in children.items() if count > 1}
        assert not forks, f"thread {play.thread} forked: {forks}"
        for what, counted in (("effects", played.acts), ("attempts", played.attempts)):
            counted.update(normal({"kind": e["kind"], **e["parameters"]}) for e in play.acted(what))


class Fault:
    """A fault on its way: armed, taken by a process, and over.

    Attributes:
        turn: which turn of the scenario it is armed for, from 0.
        hit: at which of the point's hits.
    """

    def __init__(self, matrix: Matrix, cell: Cell, turn: int, hit: int) -> None:
        self.cell = cell
        self.turn = turn
        self.hit = hit
        self._matrix = matrix
        self._it = matrix.it
        self._victim: Process | None = None
        self._said = 0

    async def happens(self, play: Play, client: Client) -> None:
        """Waits until a process took it, and does the rest."""
        taking = asyncio.create_task(self._it.faults.taken(self.cell.point))
        ending = asyncio.create_task(self._over(play, client))
        await asyncio.wait({taking, ending}, return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        await asyncio.gather(ending, return_exceptions=True)
        assert taking.done(), f"the turn ended without hit {self.hit} of {self.cell.point}"
        pid = taking.result()
        victim = self._victim = next(p for p in self._it.workers.running if p.pid == pid)
        if self.cell.act == "kill":
            assert await victim.ended() == -9
            await self._matrix.start_worker()
        else:
            await victim.frozen()
            self._said = len(victim.text)
            await self._disturb(play, victim, self._matrix.links[pid])

    async def _over(self, play: Play, client: Client) -> None:
        await self._it.stack.ended(client.run)
        await play.closed()

    async def _disturb(self, play: Play, victim: Process, links: Links) -> None:
        match self.cell.act:
            case "freeze":
                # As keepalive does in the end. Until then it would be given work that it does not do: attempts, which
                # time out, and workflow tasks.
                links.temporal.cut()
                return
            case "lose both":
                links.postgres.freeze()
                await links.temporal.refuse()
            case "cut postgres":
                links.postgres.cut()
            case "crash postgres":
                await asyncio.to_thread(self._matrix.postgres.crash)
                await self._it.stack.pool.check()
            case "cut temporal":
                links.temporal.cut()
            case "lose temporal":
                for each in self._matrix.links.values():
                    await each.temporal.refuse()
            case _:
                links.postgres.freeze()
        victim.thaw()
        match self.cell.act:
            case "hang postgres":
                await asyncio.sleep(1.5 * self._it.stack.settings.heartbeat_timeout)
                await links.postgres.heal()
            case "lose temporal":
                await play.attempted_again()
                for each in self._matrix.links.values():
                    await each.temporal.heal()
            case _:
                pass

    async def passes(self, play: Play) -> None:
        """Thaws a process, or mends its connections, and waits until it has ended its stale attempt."""
        assert self._victim is not None
        if self.cell.act == "freeze":
            self._victim.thaw()
        elif self.cell.act == "lose both":
            links = self._matrix.links[self._victim.pid]
            await links.postgres.heal()
            await links.temporal.heal()
        else:
            return
        found = await self._victim.says(ENDED, after=self._said)
        print(found.group())


# What a worker says when an attempt is over: it was refused, told to stop, or done and its completion not wanted.
ENDED = (
    r"PostgreSQL is not reachable|is claimed by \S+, not by this attempt|is not claimed by this attempt"
    r"|may not claim .* newest claims are|are not handed over yet"
    r"|attempt \d+ (done|of \S+ stopped)|not found on completion"
    r"|turn \S+ on thread \S+ (began|ended|stopped|failed)"
)


class Client:
    """Both clients of one turn: the one that sends it and stays, and one that is cut and comes back."""

    def __init__(
        self, run: str, staying: asyncio.Task[bytes], coming_back: asyncio.Task[list[Event]]
    ) -> None:
        self.run = run
        self._staying = staying
        self._coming_back = coming_back

    @classmethod
    async def send(cls, play: Play, scenario: Scenario, turn: Mapping[str, Any], every: int) -> Client:
        """Sends a turn."""
        body = {"assistant_id": scenario.graph, "stream_mode": MODES, "stream_subgraphs": True, **turn}
        if "input" in turn:
            body["input"] = {"mark": play.thread, "gate": str(play.gate), "trail": [], **turn["input"]}
        run: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        staying = asyncio.create_task(_stay(play, body, run))
        await asyncio.wait({staying, run}, return_when=asyncio.FIRST_COMPLETED)
        if staying.done():
            staying.result()
        return cls(await run, staying, asyncio.create_task(_come_back(play, await run, every)))

    async def told(self, it: Faulty) -> Told:
        """Waits for the turn's end and the clients'."""
        row = await it.stack.ended(self.run)
        async with asyncio.timeout(30):
            stayed = parse(await self._staying)
            return Told(row["status"], await it.stack.events(self.run), stayed, await self._coming_back)


async def _stay(play: Play, body: Mapping[str, Any], run: asyncio.Future[str]) -> bytes:
    path = f"/threads/{play.thread}/runs/stream"
    async with httpx.AsyncClient(base_url=play.api.url, timeout=None) as http:
        while True:
            async with http.stream("POST", path, json=body) as answered:
                if answered.status_code == 503:
                    continue  # a connection that the crash of the cell before left behind; nothing was kept
                assert answered.status_code == 200, await answered.aread()
                run.set_result(answered.headers["content-location"].rpartition("/")[2])
                return await answered.aread()


async def _come_back(play: Play, run: str, every: int) -> list[Event]:
    """Reads a turn's stream, leaving after every so many events and going on where it left."""
    seen: list[Event] = []
    path = f"/threads/{play.thread}/runs/{run}/stream"
    async with httpx.AsyncClient(base_url=play.api.url, timeout=None) as http:
        while True:
            last = seen[-1].id or "" if seen else "-1"
            async with http.stream("GET", path, headers={"Last-Event-ID": last}) as answered:
                if answered.status_code == 503:
                    continue  # PostgreSQL is away
                page = (await first_events(answered.aiter_raw(), every))[:every]
            seen += page
            if len(page) < every:
                return seen


def compare(played: Played, expected: Played, scenario: Scenario, where: str) -> None:
    """Asserts that two playings told the same and left the same."""
    for number, (told, wanted) in enumerate(zip(played.turns, expected.turns, strict=True), 1):
        place = f"{where}; turn {number}"
        assert told.status == scenario.statuses[number - 1], place
        events, others = ([(n, normal(data)) for n, data in one.log] for one in (told, wanted))
        same_events(events, others, place)
        for seen in (told.stayed, told.rejoined):
            assert [(e.name, e.data) for e in seen] == told.log, place
            assert [e.id for e in seen] == [str(n) for n in range(1, len(told.log) + 1)], place
    assert played.state == expected.state, where
    assert played.checkpoints == expected.checkpoints, where
    assert played.acts == expected.acts, where
    assert played.attempts >= expected.attempts, where


@contextlib.asynccontextmanager
async def matrix(postgres: Postgres, address: str, folder: Path, seed: str) -> AsyncGenerator[Matrix]:
    """Yields the processes of a matrix, ready."""
    config = ROOT / "tests" / "project" / "langgraph.json"
    async with (
        AsyncExitStack() as proxies,
        faulty(postgres.clone(), address, folder, config=config) as it,
        in_front_of(it.stack) as api,
    ):
        made = Matrix(it, api, folder, seed, proxies, postgres)
        for worker in [await made.start_worker() for _ in range(2)]:
            await worker.ready()
        yield made
