"""Owns `turns doctor`: looks at each part and says in one line whether it works, and what to do if not."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from dataclasses import dataclass

import click

from adapter.errors import ConfigError, TurnsError
from adapter.settings import Settings
from deploy.environment import Flags, settings_for, with_database
from deploy.preflight import bind, holder_of
from deploy.temporal import connect, profile


@dataclass(frozen=True)
class Finding:
    """What one look found out.

    Attributes:
        part: what was looked at.
        well: whether it works.
        text: what it is; and what to do when it does not work.
    """

    part: str
    well: bool
    text: str


async def report(flags: Flags) -> int:
    """Prints one line a part; returns exit code 0 when all are well, else 1.

    Raises:
        ConfigError: a setting itself is not valid, so there is nothing to look at.
    """
    settings = settings_for(flags, project_needed=False)
    findings = [
        _python(),
        await _project(settings),
        await _postgres(settings),
        await _temporal(settings),
        *_ports(settings),
    ]
    for finding in findings:
        text = " ".join(finding.text.split())
        click.echo(f"{'ok' if finding.well else 'problem':8} {finding.part:14} {text}")
    return 0 if all(finding.well for finding in findings) else 1


def _python() -> Finding:
    version = ".".join(str(part) for part in sys.version_info[:3])
    missing = [
        name for name in ("langgraph", "temporalio", "psycopg") if importlib.util.find_spec(name) is None
    ]
    if missing:
        return Finding(
            "python", False, f"{version} without {', '.join(missing)}: install durable-turns again"
        )
    return Finding("python", True, f"{version}, {sys.executable}")


async def _project(settings: Settings) -> Finding:
    from adapter.graphs import load_project

    graph = None
    try:
        # Stdout is ours; the user's code may print.
        with contextlib.redirect_stdout(sys.stderr):
            project = load_project(settings.config)
            for graph in project.graph_ids:
                async with project.plain(graph):  # compiles a builder, calls a factory
                    pass
    except ConfigError as exc:
        return Finding("project", False, str(exc))
    except Exception as exc:  # whatever the user's factory raises is the finding
        return Finding("project", False, f'graph "{graph}": {type(exc).__name__}: {exc}')
    return Finding("project", True, f"{settings.config}, graphs {', '.join(project.graph_ids)}")


async def _postgres(settings: Settings) -> Finding:
    from adapter.store import schema

    try:
        joined = with_database(settings)
        assert joined.database_url is not None
        await schema.check(joined.database_url)
    except TurnsError as exc:
        return Finding("postgres", False, str(exc))
    kind = "DATABASE_URL" if settings.database_url else f"embedded, {settings.data_dir}"
    return Finding("postgres", True, f"{kind}, schema up to date")


async def _temporal(settings: Settings) -> Finding:
    try:
        found = profile()
        target = found.address or f"127.0.0.1:{settings.temporal_port}"
        client = await connect(target, found)
    except ConfigError as exc:
        return Finding("temporal", False, str(exc))
    return Finding("temporal", True, f"{target}, namespace {client.namespace}")


def _ports(settings: Settings) -> list[Finding]:
    embedded = not profile().address
    ours = holder_of(settings.data_dir)
    wanted = {"port": (settings.host, settings.port)}
    if embedded:
        wanted |= {
            "temporal-port": ("127.0.0.1", settings.temporal_port),
            "ui-port": ("127.0.0.1", settings.ui_port),
        }
    findings: list[Finding] = []
    for name, (host, port) in wanted.items():
        try:
            bind(host, port, f"--{name}").close()
        except ConfigError as exc:
            running = ours is not None
            text = f"{port} is in use while `turns dev` runs (pid {ours})" if running else str(exc)
            findings.append(Finding(name, running, text))
        else:
            findings.append(Finding(name, True, f"{port} is free"))
    return findings
