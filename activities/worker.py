"""Owns the composition of a worker process: pool, store, engine, activities, workflows, Temporal's worker."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from datetime import timedelta
from typing import Any

import psycopg
from langgraph.store.postgres.aio import AsyncPostgresStore
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
)
from temporalio.envconfig import ClientConfig
from temporalio.worker import FixedSizeSlotSupplier, UnsandboxedWorkflowRunner, Worker, WorkerTuner

from activities.expiry import ExpiryActivities
from activities.heartbeat import Attempts
from activities.retention import RetentionActivities
from activities.slots import Slots
from activities.step import StepActivities
from activities.turn import TurnActivities
from activities.watchdog import Watchdog
from activities.webhook import WebhookActivities
from adapter.engine import Engine
from adapter.errors import ConfigError
from adapter.graphs import Project
from adapter.node_threads import NodeThreads
from adapter.settings import Settings
from adapter.store import schema
from adapter.store.pool import create_pool
from adapter.store.sql import query
from workflows import names
from workflows.contracts import Defaults
from workflows.delay import DelayWorkflow
from workflows.expire import ExpireWorkflow
from workflows.handoff import HandOverWorkflow
from workflows.prune import PruneWorkflow
from workflows.sweep import SweepWorkflow
from workflows.turn import TurnWorkflow
from workflows.webhook import WebhookWorkflow

log = logging.getLogger("turns")


async def connect() -> Client:
    """Connects to Temporal as its own environment variables or TOML profile say (127.0.0.1:7233 without)."""
    config = ClientConfig.load_client_connect_config()
    config.setdefault("target_host", "127.0.0.1:7233")
    return await Client.connect(**config)


def defaults_of(settings: Settings) -> Defaults:
    """Returns what workflows need to know of the settings."""
    return Defaults(
        hb=settings.heartbeat_timeout,
        stc=settings.node_timeout,
        attempts=settings.node_attempts,
        parallel=settings.parallel_effects,
    )


async def run(
    settings: Settings, project: Project, stop: asyncio.Event, *, client: Client | None = None
) -> bool:
    """Works until `stop` is set, then lets running nodes finish within the grace period and hands back the rest.

    Returns:
        Whether all of it has stopped. If not, the process must end without waiting for it.

    Raises:
        SchemaMismatch: the database has another schema.
        StoreUnavailable: PostgreSQL could not be reached.
        ConfigError: no database is configured.
    """
    if settings.database_url is None:
        raise ConfigError("no database: set DATABASE_URL, or run `turns dev`")
    await schema.check(settings.database_url)
    client = client or await connect()
    watchdog = Watchdog()
    attempts = Attempts(watchdog)
    # Synchronous nodes run in the loop's threads, and so does the serializing of state: with the default of a few
    # threads, a handful of nodes that sleep would keep every other turn from storing anything.
    threads = NodeThreads(2 * settings.concurrent_effects + 32, thread_name_prefix="node")
    asyncio.get_running_loop().set_default_executor(threads)
    async with (
        create_pool(settings.database_url, size=settings.pool_size, name="turns-worker") as pool,
        AsyncPostgresStore.from_conn_string(
            settings.database_url, pool_config={"min_size": 1, "max_size": 5}
        ) as store,
    ):
        engine = Engine(
            pool, store, project, token_delay=settings.token_delay, warm_turns=settings.warm_turns
        )
        left = set[asyncio.Task[Any]]()
        steps = StepActivities(pool, engine, attempts, left)
        rows = TurnActivities(
            pool,
            client,
            attempts,
            task_queue=settings.task_queue,
            defaults=defaults_of(settings),
            compensation_attempts=settings.compensation_attempts,
            compensation_timeout=settings.compensation_timeout,
        )
        worker = Worker(
            client,
            task_queue=settings.task_queue,
            workflows=[
                TurnWorkflow,
                HandOverWorkflow,
                DelayWorkflow,
                WebhookWorkflow,
                SweepWorkflow,
                PruneWorkflow,
                ExpireWorkflow,
            ],
            activities=[
                steps.begin,
                steps.advance,
                steps.node,
                rows.finish,
                rows.compensate,
                rows.record_failure,
                rows.hand_over,
                rows.fall_due,
                rows.sweep,
                WebhookActivities(pool, project, private=settings.webhook_private).webhook,
                RetentionActivities(pool, days=settings.event_retention).prune,
                ExpiryActivities(pool).expire,
            ],
            # Tests replay every kind of turn in Temporal's sandbox. Here these workflows run and no others, and the
            # sandbox makes their modules anew for each run: a tenth of what a turn costs.
            workflow_runner=UnsandboxedWorkflowRunner(),
            tuner=WorkerTuner.create_composite(
                workflow_supplier=Slots(100),
                activity_supplier=Slots(settings.concurrent_effects),
                local_activity_supplier=FixedSizeSlotSupplier(1),
                nexus_supplier=FixedSizeSlotSupplier(1),
            ),
            graceful_shutdown_timeout=timedelta(seconds=settings.shutdown_grace),
            # How long a run waits for the worker that has it in its cache, before any other may take it on.
            sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
            max_heartbeat_throttle_interval=timedelta(milliseconds=100),
        )
        listener = asyncio.create_task(_listen_for_cancels(settings.database_url, attempts))
        try:
            await ensure_schedules(client, settings.task_queue)
            with watchdog.running():
                async with worker:
                    log.info("worker ready: graphs %s", ", ".join(project.graph_ids))
                    await stop.wait()
                    log.info(
                        "stopping: %d attempts under way; what has not ended in %.0f s is handed back",
                        attempts.count,
                        settings.shutdown_grace,
                    )
        finally:
            listener.cancel()
            await engine.close()
        return not left


async def ensure_schedules(client: Client, task_queue: str) -> None:
    """Makes the schedules of the bookkeeping: stranded turns, old events, lifetimes; unless they exist."""
    for schedule, action, every in (
        (names.SWEEP_SCHEDULE, names.SWEEP_WORKFLOW, timedelta(minutes=1)),
        (names.PRUNE_SCHEDULE, names.PRUNE_WORKFLOW, timedelta(hours=1)),
        (names.EXPIRE_SCHEDULE, names.EXPIRE_WORKFLOW, timedelta(minutes=5)),
    ):
        with contextlib.suppress(ScheduleAlreadyRunningError):
            await client.create_schedule(
                schedule,
                Schedule(
                    action=ScheduleActionStartWorkflow(action, id=schedule, task_queue=task_queue),
                    spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=every)]),
                    policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP),
                ),
            )


async def _listen_for_cancels(database_url: str, attempts: Attempts) -> None:
    """Makes attempts beat when the API notices a cancel; without it they learn of it at their next beat."""
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as conn:
                await conn.execute(query("listen_cancel"))
                async for notice in conn.notifies():
                    attempts.notice(notice.payload)
        except psycopg.OperationalError as exc:
            log.warning("cancel notices are late until PostgreSQL is back: %s", type(exc).__name__)
            await asyncio.sleep(1)
