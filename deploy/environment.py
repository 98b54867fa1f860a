"""Owns how a process comes to its settings: flags over environment over the project's own variables."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from dotenv import dotenv_values

from adapter.errors import ConfigError
from adapter.settings import Settings, load
from deploy.postgres import running_url

Flags: TypeAlias = Mapping[str, object]
"""What the command line was given, by name of the setting; None where it was not."""

LISTENER_VARIABLE: Final = "TURNS_LISTENER"
"""Tells an API process of the local stack which inherited descriptor to accept from."""
_PATHS: Final = frozenset({"config", "data_dir"})


def settings_for(flags: Flags, *, project_needed: bool = True) -> Settings:
    """Adds the project's variables to this process's environment and returns its settings.

    The variables come first because the graphs' modules read them when they are imported. A variable that is
    set already stays as it is.

    Raises:
        ConfigError: a setting is not valid, or the project file cannot be read and is needed.
    """
    settings = load(**flags)
    if project_needed or settings.config.exists():
        for name, value in project_variables(settings.config).items():
            os.environ.setdefault(name, value)
    return load(**flags)


def join_local_stack(settings: Settings) -> Settings:
    """Fills in the local stack's servers where none is configured, here and in this process's environment.

    Raises:
        ConfigError: no PostgreSQL is configured, and none runs under the data directory.
    """
    from deploy.temporal import profile

    if not profile().address:
        os.environ["TEMPORAL_ADDRESS"] = f"127.0.0.1:{settings.temporal_port}"
    joined = with_database(settings)
    os.environ.update(exported(joined))
    return joined


def with_database(settings: Settings) -> Settings:
    """Returns settings that name a PostgreSQL: the configured one, or the embedded one that runs.

    Raises:
        ConfigError: no PostgreSQL is configured, and none runs under the data directory.
    """
    if settings.database_url:
        return settings
    url = running_url(settings.data_dir)
    if url is None:
        raise ConfigError(
            f"no PostgreSQL: DATABASE_URL is not set and none runs under {settings.data_dir}; "
            "start `turns dev`, or set DATABASE_URL"
        )
    return load(
        **{name: getattr(settings, name) for name in settings.model_fields_set} | {"database_url": url}
    )


def exported(settings: Settings) -> dict[str, str]:
    """Returns the variables that make another process, in whatever directory, load the same settings."""
    variables: dict[str, str] = {}
    for name in settings.model_fields_set | _PATHS:
        value: object = getattr(settings, name)
        if value is None or value == "":
            continue
        key = "DATABASE_URL" if name == "database_url" else f"TURNS_{name.upper()}"
        variables[key] = str(value.resolve() if isinstance(value, Path) else value)
    return variables


def project_variables(config: Path) -> dict[str, str]:
    """Returns the variables of the project file's `env`, which is an object or the path of a .env file.

    Raises:
        ConfigError: the project file or the .env file cannot be read.
    """
    env: Any = _content(config).get("env")
    if env is None or env == "":
        return {}
    if isinstance(env, str):
        file = config.parent / env
        if not file.is_file():
            raise ConfigError(f"{config}: env names {env}, and there is no such file")
        return {name: value for name, value in dotenv_values(file).items() if value is not None}
    if isinstance(env, dict):
        return {str(name): str(value) for name, value in cast("dict[object, object]", env).items()}
    raise ConfigError(f"{config}: env must be an object or the path of a .env file")


def asks_who_calls(settings: Settings) -> bool:
    """Whether authentication is configured: keys, or an `auth` of the project file, which is not imported here.

    Raises:
        ConfigError: the project file cannot be read.
    """
    auth: Any = _content(settings.config).get("auth")
    return bool(settings.api_keys) or (
        isinstance(auth, dict) and bool(cast("dict[str, Any]", auth).get("path"))
    )


def _content(config: Path) -> dict[str, Any]:
    try:
        content: Any = json.loads(config.read_text("utf-8"))
    except OSError as exc:
        raise ConfigError(
            f"{config}: {exc.strerror}; run in the project's directory, or pass --config"
        ) from None
    except ValueError as exc:
        raise ConfigError(f"{config}: not JSON: {exc}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{config}: must hold a JSON object")
    return cast("dict[str, Any]", content)
