"""Owns the options of a turn's activities: timeouts, retries, task queue."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from temporalio.common import RetryPolicy
from temporalio.workflow import ActivityCancellationType

from workflows.contracts import Defaults


def activity_options(
    defaults: Defaults, own: Mapping[str, float | int | str] | None = None
) -> dict[str, Any]:
    """Returns the options of a begin, step or advance.

    Exceptions of a node are retried as its LangGraph policy says (the activity sets the delay, or says
    "not again"); the attempts here bound how often a *lost worker* is replaced.

    Args:
        defaults: of the run.
        own: the node's options, see `Effect.options`.
    """
    own = own or {}
    options: dict[str, Any] = {
        "heartbeat_timeout": timedelta(seconds=float(own.get("hb", defaults.hb))),
        "start_to_close_timeout": timedelta(seconds=float(own.get("stc", defaults.stc))),
        "retry_policy": RetryPolicy(
            initial_interval=timedelta(seconds=1),
            maximum_interval=timedelta(seconds=30),
            maximum_attempts=int(own.get("attempts", defaults.attempts)),
        ),
        # A cancelled turn is over when its nodes have stopped, not when they were told to.
        "cancellation_type": ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    }
    if "queue" in own:
        options["task_queue"] = str(own["queue"])
    return options


def compensation_options(defaults: Defaults) -> dict[str, Any]:
    """Returns the options of compensations: an attempt ends at the first one that fails, and the next goes on there.

    How often each is tried is counted in the journal.
    """
    return {
        "heartbeat_timeout": timedelta(seconds=defaults.hb),
        "start_to_close_timeout": timedelta(seconds=defaults.stc),
        "retry_policy": RetryPolicy(
            initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=60)
        ),
    }


def bookkeeping_options(defaults: Defaults) -> dict[str, Any]:
    """Returns the options of activities that only write rows: retried until the database answers.

    They beat, too, or a turn whose worker is lost just then would seem to run until the other timeout.
    """
    return {
        "heartbeat_timeout": timedelta(seconds=defaults.hb),
        "start_to_close_timeout": timedelta(seconds=60),
        # Rows are written whatever is cancelled meanwhile.
        "cancellation_type": ActivityCancellationType.ABANDON,
        "retry_policy": RetryPolicy(
            initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=10)
        ),
    }
