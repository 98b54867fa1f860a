"""Owns the command line's flags: each is a setting, described and checked where the setting is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from adapter.settings import Settings

_Command = TypeVar("_Command", bound=Callable[..., Any])

_METAVARS: Final = {
    "config": "FILE",
    "data_dir": "DIR",
    "host": "ADDRESS",
    "port": "PORT",
    "temporal_port": "PORT",
    "ui_port": "PORT",
}


def settings_flags(*names: str) -> Callable[[_Command], _Command]:
    """Adds a flag for each named setting.

    The flags are plain text to click and read no environment: `Settings` does both, so that a wrong value
    gets the same message from a flag and from a variable.
    """

    def add(command: _Command) -> _Command:
        for name in reversed(names):
            field = Settings.model_fields[name]
            command = click.option(
                f"--{name.replace('_', '-')}",
                name,
                metavar=_METAVARS.get(name, "N"),
                help=f"{field.description}  [{field.default}; env TURNS_{name.upper()}]",
            )(command)
        return command

    return add


allow_public = click.option(
    "--allow-public",
    is_flag=True,
    envvar="TURNS_ALLOW_PUBLIC",
    help="Listen beyond this machine, although nobody is asked who they are.  [env TURNS_ALLOW_PUBLIC]",
)
