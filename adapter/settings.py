"""Owns the one settings object of a process: read from the environment once, at the composition root.

Everything a process may be told is a field here, with its unit and its environment variable. Nothing else
in the project reads the environment, except Temporal's own client profile (address, namespace, TLS), which
Temporal's SDK reads itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import AliasChoices, Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from adapter.errors import ConfigError

Port = Annotated[int, Field(ge=1, le=65535)]
Seconds = Annotated[float, Field(gt=0)]


class Settings(BaseSettings):
    """What one process was told. Frozen: a process that needs other settings is another process."""

    model_config = SettingsConfigDict(env_prefix="TURNS_", frozen=True, extra="ignore", populate_by_name=True)

    database_url: str | None = Field(
        default=None,
        validation_alias=AliasChoices("DATABASE_URL", "TURNS_DATABASE_URL", "database_url"),
        description="PostgreSQL connection string; without one, the embedded server under data_dir is used.",
    )
    config: Path = Field(default=Path("langgraph.json"), description="The LangGraph project file.")
    data_dir: Path = Field(default=Path(".turns"), description="Where the embedded servers keep their data.")
    host: str = Field(default="127.0.0.1", description="Address the API listens on.")
    port: Port = Field(default=2024, description="Port the API listens on.")
    temporal_port: Port = Field(default=7233, description="Port of the embedded Temporal dev server.")
    ui_port: Port = Field(default=8233, description="Port of the embedded Temporal web UI.")
    workers: int = Field(default=1, ge=1, le=64, description="Worker processes that `turns dev` starts.")
    api_workers: int = Field(default=1, ge=1, le=64, description="API processes that share the port.")

    task_queue: str = Field(default="turns", min_length=1, description="Temporal task queue of turns.")
    heartbeat_timeout: Seconds = Field(
        default=30.0,
        description="Seconds without a heartbeat after which a node's worker counts as lost.",
    )
    node_timeout: Seconds = Field(
        default=86_400.0,
        description="Seconds one attempt of a node may take, unless the node says otherwise.",
    )
    node_attempts: int = Field(
        default=20,
        ge=1,
        description="Attempts of a node whose worker is lost again and again, before its turn fails.",
    )
    concurrent_effects: int = Field(
        default=100, ge=1, description="Nodes that one worker process runs at a time."
    )
    warm_turns: int = Field(
        default=64,
        ge=0,
        description="Turns whose state a worker remembers between two of their nodes, instead of reading it again.",
    )
    parallel_effects: int = Field(
        default=100,
        ge=2,
        description="Activities one superstep is split into at most; a wider fan-out is run in chunks.",
    )
    compensation_attempts: int = Field(
        default=8,
        ge=1,
        description="Calls of an effect's compensation that may fail before it is given up and reported.",
    )
    compensation_timeout: Seconds = Field(
        default=60.0, description="Seconds one call of a compensation may take before it counts as failed."
    )
    shutdown_grace: Seconds = Field(
        default=10.0, description="Seconds a stopping worker lets running nodes finish."
    )
    queued_turns: int = Field(
        default=100,
        ge=1,
        description="Turns that may wait on one thread behind the one that runs; the next is refused with 429.",
    )
    pool_size: int = Field(default=10, ge=1, description="PostgreSQL connections per process, at most.")
    pool_wait: Seconds = Field(
        default=10.0,
        description="Seconds a request waits for a free PostgreSQL connection before it is refused with 503.",
    )
    event_retention: float = Field(
        default=7.0,
        ge=0,
        le=36_500,
        description="Days that a turn's events are kept after it ended; 0 keeps them for ever.",
    )
    token_delay: float = Field(
        default=0.015,
        ge=0,
        le=1,
        description="Seconds that streamed tokens may wait for each other before they are stored together.",
    )
    sse_heartbeat: Seconds = Field(
        default=5.0, description="Seconds of silence before a stream's comment line."
    )
    request_bytes: int = Field(
        default=16 * 1024 * 1024, ge=1024, description="Largest accepted request body."
    )
    on_disconnect: str = Field(
        default="continue",
        pattern="^(continue|cancel)$",
        description="What a client's leaving does to its turn when the request does not say.",
    )
    webhook_private: bool = Field(
        default=False,
        description="Whether a run's webhook may be on this machine or in a private network.",
    )
    api_keys: str = Field(
        default="",
        repr=False,
        description='Who may call the API, as "name:key,name2:key2"; each sees the threads made under its name.',
    )
    cors_origins: str = Field(
        default="*", description="Origins that browsers may call from, comma separated."
    )

    @model_validator(mode="after")
    def _ports_differ(self) -> Self:
        ports = {"port": self.port, "temporal_port": self.temporal_port, "ui_port": self.ui_port}
        for name, value in ports.items():
            for other, same in ports.items():
                if name < other and value == same:
                    raise ValueError(f"{name} and {other} are both {value}; give each its own")
        return self


def load(**overrides: object) -> Settings:
    """Reads the environment; `overrides` (from command-line flags) win.

    Raises:
        ConfigError: A value is not valid; the message is one line that names the setting and the value.
    """
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**given)  # type: ignore[arg-type]
    except ValidationError as exc:
        first = exc.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        what = first["msg"].removeprefix("Value error, ")
        raise ConfigError(f"{where}: {what} (got {first['input']!r})" if where else what) from None
