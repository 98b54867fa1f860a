"""Owns the command `turns`: its subcommands, their flags, and the one line a failure is told in.

Each command imports what it runs when it runs: `turns --help` and a misspelt flag are answered at once.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import sys
import time
import uuid
from collections.abc import Sequence
from typing import Final, NoReturn

import click

from adapter.errors import ConfigError, TurnsError
from deploy.options import allow_public, settings_flags

BAD_INPUT: Final = 2
FAILED: Final = 1
INTERRUPTED: Final = 130


@click.group(name="turns", no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """LangGraph agents that survive anything, behind the LangGraph HTTP API."""


@cli.command()
@settings_flags("config", "host", "port", "data_dir", "workers", "api_workers", "temporal_port", "ui_port")
@allow_public
def dev(*, allow_public: bool, **flags: str | None) -> int:
    """Run the whole stack on this machine: PostgreSQL, Temporal, workers, API."""
    began = time.monotonic()
    from deploy import logs
    from deploy.environment import asks_who_calls, settings_for
    from deploy.preflight import refuse_public

    settings = settings_for(flags)
    refuse_public(settings.host, allowed=allow_public, authenticated=asks_who_calls(settings))
    from deploy.local import dev as run

    logs.setup("turns")
    return asyncio.run(run(settings, allow_public=allow_public, began=began))


@cli.command()
@settings_flags("config", "data_dir", "temporal_port")
@click.option("--name", default="worker", hidden=True)
def worker(*, name: str, **flags: str | None) -> None:
    """Run one worker process, which runs the graphs' nodes."""
    from deploy import processes

    processes.worker(flags, name)


@cli.command()
@settings_flags("config", "host", "port", "data_dir", "api_workers", "temporal_port")
@allow_public
@click.option("--name", default="api", hidden=True)
def api(*, allow_public: bool, name: str, **flags: str | None) -> None:
    """Serve the HTTP API."""
    from deploy import processes

    processes.api(flags, name, allow_public=allow_public)


@cli.command()
@settings_flags("config", "data_dir")
def migrate(**flags: str | None) -> None:
    """Bring the database to this version's schema."""
    from deploy import processes

    processes.migrate(flags)
    click.echo("the schema is up to date")


@cli.command()
@settings_flags("config", "host", "port", "data_dir", "temporal_port", "ui_port")
def doctor(**flags: str | None) -> int:
    """Check each part and say what to do about the ones that do not work."""
    from deploy import doctor

    return asyncio.run(doctor.report(flags))


@cli.command()
@settings_flags("config", "data_dir")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="At most so many."
)
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
def abandoned(*, limit: int, as_json: bool, **flags: str | None) -> None:
    """List threads whose last turn failed or was cancelled, with what it had done."""
    from deploy import reports

    reports.abandoned(flags, limit=limit, as_json=as_json)


@cli.command()
@settings_flags("config", "data_dir")
@click.option("--thread", type=click.UUID, metavar="ID", help="Only this thread's.")
@click.option("--unsettled", is_flag=True, help="Only those whose outcome nobody knows.")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="At most so many."
)
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
def effects(
    *, thread: uuid.UUID | None, unsettled: bool, limit: int, as_json: bool, **flags: str | None
) -> None:
    """List what nodes did to the world, the newest first."""
    from deploy import reports

    thread_id = None if thread is None else str(thread)
    reports.effects(flags, thread_id=thread_id, unsettled=unsettled, limit=limit, as_json=as_json)


@cli.command("check-project", hidden=True)
@settings_flags("config")
def check_project(**flags: str | None) -> None:
    """Load the project and name its graphs."""
    from deploy import processes

    processes.check_project(flags)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and exits: 0 done, 1 failed, 2 wrong input or set-up, 130 interrupted."""
    code = [FAILED]  # what remains when an error is not one of ours and Python prints its traceback
    # Registered first, so run last, after what tracing libraries register to send the rest. Threads of Temporal's
    # Rust core may still call into an interpreter that is being torn down, which then aborts (seen now
    # and then with temporalio 1.35 after a refused connection): the process ends before that.
    atexit.register(lambda: _end(code[0]))
    code[0] = _run(arguments)
    sys.exit(code[0])


def _end(code: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _run(arguments: Sequence[str] | None) -> int:
    code: object = FAILED
    try:
        code = cli.main(arguments, prog_name="turns", standalone_mode=False)
    except click.ClickException as exc:
        code = _refuse(exc)
    except ConfigError as exc:
        code = _tell(str(exc), BAD_INPUT)
    except TurnsError as exc:
        # A process of ours that failed has said so itself, and its code is the answer.
        told: int | None = getattr(exc, "code", None)
        code = told if told is not None else _tell(str(exc), FAILED)
    except (KeyboardInterrupt, click.Abort):
        code = INTERRUPTED
    return code if isinstance(code, int) else 0


def _refuse(error: click.ClickException) -> int:
    text = error.format_message()
    if isinstance(error, click.UsageError) and "Missing command" in text:
        text = f"give a command, one of {', '.join(_visible())}; see turns --help"
    return _tell(text, BAD_INPUT)


def _visible() -> list[str]:
    return sorted(name for name, command in cli.commands.items() if not command.hidden)


def _tell(message: str, code: int) -> int:
    click.echo(f"turns: {' '.join(message.split())}", err=True)
    return code


if __name__ == "__main__":
    main()
