"""What holds for ours when clients leave, write again at once, write twice, and processes are killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

from tests import servers
from tests.disconnect import told
from tests.disconnect.counts import Counts, KilledCounts, count, count_killed
from tests.disconnect.rounds import play_all, play_killed
from tests.disconnect.served import Served, ours
from tests.disconnect.trees import Tree, read_tree

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150)]

ROUNDS = 10
AT_ONCE = 5
KILLED_ROUNDS = 3
SEED = 1


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def served(
    postgres: servers.Postgres, temporal: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Served]:
    async with ours(postgres.clone(), temporal, tmp_path_factory.mktemp("ours")) as it:
        yield it


async def test_continue(served: Served) -> None:
    rounds = await play_all(served, "continue", rounds=ROUNDS, seed=SEED, at_once=AT_ONCE)
    assert await count(served, rounds) == Counts(
        asked=4 * ROUNDS,
        completed=4 * ROUNDS,
        in_history=4 * ROUNDS,
        charged=4 * ROUNDS,
        charged_again=0,
        orphans=0,
        unwritten=0,
        forked=0,
        threads=ROUNDS,
    )
    # Every charge belongs to one turn, and no turn has two.
    journal = told.journaled_charges(served, rounds)
    turns = Counter(journal[made["key"]]["run_id"] for made in told.charges_made(served, rounds))
    assert set(turns.values()) == {1}
    assert turns.keys() == {run["run_id"] for one in rounds for run in told.runs(served, one.thread)}
    for one in rounds:
        runs = told.runs(served, one.thread)
        assert [run["status"] for run in runs] == ["success"] * 4
        # The two that were sent at the same time are two turns, in the order of their acceptance.
        booking_of = {asked.run: asked.booking for asked in one.asked}
        assert (await _tree(served, one.thread)).history() == [booking_of[run["run_id"]] for run in runs]


async def test_cancel(served: Served) -> None:
    rounds = await play_all(
        served, "cancel", rounds=ROUNDS, seed=SEED, at_once=AT_ONCE, on_disconnect="cancel"
    )
    counts = await count(served, rounds)
    assert (counts.completed, counts.in_history, counts.forked) == (3 * ROUNDS, 3 * ROUNDS, 0)
    assert counts.charged_again == 0
    for one in rounds:
        assert told.status_of_left(served, one) == "interrupted"
        assert told.thread_status(served, one.thread) == "idle"
        assert [run["status"] for run in told.runs(served, one.thread)] == ["interrupted", *["success"] * 3]
    # The provider may have been asked before the node was told to stop. No checkpoint has its answer then, but the
    # call under way was let end, and the journal has the charge with the turn that it was made for.
    journal = told.journaled_charges(served, rounds)
    for made in told.charges_made(served, rounds):
        entry = journal[made["key"]]
        assert entry["state"] == "finished"


@pytest.mark.parametrize("web", [False, True])
async def test_killed_in_the_middle_of_a_charge(served: Served, web: bool) -> None:
    rounds = await play_killed(served, "killed-web" if web else "killed", rounds=KILLED_ROUNDS, web=web)
    assert await count_killed(served, rounds) == KilledCounts(
        rounds=KILLED_ROUNDS,
        by_itself=KILLED_ROUNDS,
        # A worker's death does not reach the client's stream. The API's does; the client then gets the same turn.
        sent_again=KILLED_ROUNDS if web else 0,
        attempts=((1,) if web else (2,)) * KILLED_ROUNDS,
        effects=(1,) * KILLED_ROUNDS,
        orphans=0,
    )
    for one in rounds:
        assert (await _tree(served, one.thread)).history() == [one.booking]


async def _tree(served: Served, thread: str) -> Tree:
    async with AsyncPostgresSaver.from_conn_string(served.database_url) as saver:
        return await read_tree(saver, thread)
