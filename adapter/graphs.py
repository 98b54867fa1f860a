"""Owns the project file: reads `langgraph.json`, imports the user's graphs, and gates them.

It knows the file as the LangGraph CLI does: `graphs` (a compiled graph, a builder, or a factory taking config, sync or
async), `env`, `dependencies` (paths are put on sys.path), `auth`. Next: `adapter/gate.py`.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import logging
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from dotenv import dotenv_values
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import StateGraph
from langgraph.pregel import Pregel
from langgraph_sdk import Auth

from adapter._pregel import AnyGraph
from adapter.errors import ConfigError, NotFound
from adapter.first import FirstEffect, first_effect
from adapter.gate import gated

log = logging.getLogger("turns")

# Top-level names of this distribution: a module of the user's with such a name would be hidden by ours.
OWN_MODULES = ("adapter", "workflows", "activities", "api", "deploy")


@dataclass(slots=True)
class Project:
    """A loaded project.

    Attributes:
        path: the project file.
        env: variables that the file asks for; the command line applies them.
        exports: graph id to what the user exports under it.
        auth_target: where the user's `Auth` object is; None when the file names none.
    """

    path: Path
    env: dict[str, str]
    exports: dict[str, Any]
    auth_target: str | None = None
    _gated: dict[str, AnyGraph] = field(default_factory=dict[str, AnyGraph])
    _plain: dict[str, AnyGraph] = field(default_factory=dict[str, AnyGraph])
    _first: dict[str, FirstEffect | None] = field(default_factory=dict[str, "FirstEffect | None"])

    @property
    def graph_ids(self) -> list[str]:
        """The ids of the configured graphs, in the file's order."""
        return list(self.exports)

    def auth(self) -> Auth | None:
        """Imports the user's `Auth` object. Only the API does: a worker need not have what it needs.

        Raises:
            ConfigError: it is not there, or is no `Auth`.
        """
        if self.auth_target is None:
            return None
        found = _named(self.path, '"auth"', "turns_auth", self.auth_target)
        if not isinstance(found, Auth):
            raise ConfigError(
                f'"auth": {self.auth_target} is a {type(found).__name__}; export a langgraph_sdk.Auth'
            )
        return found

    def gate_all(self) -> None:
        """Gates what is no factory, so that a mistake in it is told when the project is loaded.

        Raises:
            ConfigError: a node's `durable` metadata is not understood.
        """
        for graph_id, exported in self.exports.items():
            if isinstance(exported, (Pregel, StateGraph)):
                try:
                    self._gated[graph_id] = gated(self._static(graph_id, exported))
                except ConfigError as exc:
                    raise ConfigError(f'graph "{graph_id}": {exc}') from None

    def _static(self, graph_id: str, exported: Any) -> AnyGraph:
        if graph_id not in self._plain:
            self._plain[graph_id] = _compiled(graph_id, exported)
            _tell_what_is_replaced(graph_id, self._plain[graph_id])
        return self._plain[graph_id]

    def first_effect(self, graph_id: str) -> FirstEffect | None:
        """Returns the effect that every new input of a graph starts with, if the graph says so by itself."""
        if graph_id not in self._first:
            exported = self.exports.get(graph_id)
            static = isinstance(exported, (Pregel, StateGraph))
            self._first[graph_id] = first_effect(self._static(graph_id, exported)) if static else None
        return self._first[graph_id]

    @asynccontextmanager
    async def graph(self, graph_id: str, config: RunnableConfig) -> AsyncGenerator[AnyGraph]:
        """Yields the gated copy of a graph; a factory is called with `config` each time.

        Raises:
            NotFound: the project has no such graph.
            ConfigError: what the user exports is not a graph.
        """
        if graph_id in self._gated:
            yield self._gated[graph_id]
            return
        async with self._made(graph_id, config) as (graph, static):
            copy = gated(graph)
            if static:
                self._gated[graph_id] = copy
            yield copy

    @asynccontextmanager
    async def plain(self, graph_id: str, config: RunnableConfig | None = None) -> AsyncGenerator[AnyGraph]:
        """Yields the user's own graph, for reading: state, schemas, drawings.

        Raises:
            NotFound: the project has no such graph.
            ConfigError: what the user exports is not a graph.
        """
        async with self._made(graph_id, config or {}) as (graph, _):
            yield graph

    @asynccontextmanager
    async def _made(self, graph_id: str, config: RunnableConfig) -> AsyncGenerator[tuple[AnyGraph, bool]]:
        if graph_id not in self.exports:
            raise NotFound(f"Graph '{graph_id}' not found. Expected one of: {self.graph_ids}")
        exported = self.exports[graph_id]
        if isinstance(exported, (Pregel, StateGraph)):
            yield self._static(graph_id, exported), True
            return
        made: Any = exported(config) if _takes_config(exported) else exported()
        if inspect.isawaitable(made):
            made = await made
        if hasattr(made, "__aenter__"):
            async with made as entered:
                yield _compiled(graph_id, entered), False
        else:
            yield _compiled(graph_id, made), False


def load_project(path: Path) -> Project:
    """Reads the project file and imports its graphs, in this process.

    Raises:
        ConfigError: the file is missing or broken, a graph is missing, or a module's name collides with ours.
    """
    path = path.resolve()
    body = _read(path)
    graphs = body.get("graphs")
    if not isinstance(graphs, Mapping) or not graphs:
        raise ConfigError(f'{path}: "graphs" must name at least one graph')
    _extend_path(path, body.get("dependencies"))
    exports = {
        str(graph_id): _import(path, str(graph_id), target)
        for graph_id, target in cast("Mapping[Any, Any]", graphs).items()
    }
    project = Project(path, _env(path, body.get("env")), exports, _auth_target(path, body.get("auth")))
    project.gate_all()
    return project


def _read(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist; name the project file with --config") from None
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{path} cannot be read: {exc}") from None
    try:
        body = json.loads(text)
    except json.JSONDecodeError as exc:
        raise ConfigError(f"{path} is not JSON: {exc}") from None
    if not isinstance(body, Mapping):
        raise ConfigError(f"{path} must hold a JSON object")
    return cast("Mapping[str, Any]", body)


def _env(path: Path, env: object) -> dict[str, str]:
    if env is None or env == "":
        return {}
    if isinstance(env, Mapping):
        return {str(k): str(v) for k, v in cast("Mapping[Any, Any]", env).items()}
    if isinstance(env, str):
        file = path.parent / env
        if not file.is_file():
            raise ConfigError(f'{path}: "env" names {file}, which does not exist')
        return {k: v for k, v in dotenv_values(file).items() if v is not None}
    raise ConfigError(f'{path}: "env" must be a path or an object')


def _auth_target(path: Path, auth: object) -> str | None:
    if auth is None:
        return None
    if not isinstance(auth, Mapping):
        raise ConfigError(f'{path}: "auth" must be an object with a "path"')
    target = cast("Mapping[str, object]", auth).get("path")
    if target is not None and not isinstance(target, str):
        raise ConfigError(f'{path}: "auth" must have a "path" like "./auth.py:auth", not {target!r}')
    return target


def _extend_path(path: Path, dependencies: object) -> None:
    if dependencies is None:
        dependencies = ["."]
    if not isinstance(dependencies, list):
        raise ConfigError(f'{path}: "dependencies" must be a list')
    for dependency in cast("list[object]", dependencies):
        if not isinstance(dependency, str):
            raise ConfigError(f'{path}: "dependencies" must hold strings, not {dependency!r}')
        if not dependency.startswith((".", "/")):
            continue  # a package, which the user's environment has or has not
        folder = (path.parent / dependency).resolve()
        if not folder.is_dir():
            raise ConfigError(f'{path}: dependency "{dependency}" is not a folder')
        _refuse_collisions(folder)
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))


def _refuse_collisions(folder: Path) -> None:
    ours = Path(__file__).resolve().parent.parent
    for name in OWN_MODULES:
        theirs = [folder / f"{name}.py", folder / name / "__init__.py"]
        for found in theirs:
            if found.is_file() and not found.is_relative_to(ours / name):
                raise ConfigError(
                    f'{found} would be hidden by durable-turns\' own module "{name}"; rename it '
                    f"(names taken: {', '.join(OWN_MODULES)})"
                )


def _import(path: Path, graph_id: str, target: object) -> Any:
    if isinstance(target, Mapping):
        target = cast("Mapping[str, Any]", target).get("path")
    exported = _named(path, f'graph "{graph_id}"', f"turns_graph_{graph_id}", target)
    if not callable(exported) and not isinstance(exported, (Pregel, StateGraph)):
        raise ConfigError(
            f'graph "{graph_id}": {target} is a {type(exported).__name__}; '
            "export a compiled graph, a builder, or a factory"
        )
    return cast("Any", exported)


def _named(path: Path, what: str, module_name: str, target: object) -> Any:
    """Returns what the project file calls "file.py:name" or "module:name"."""
    if not isinstance(target, str) or ":" not in target:
        raise ConfigError(f'{path}: {what} must be "file.py:name" or "module:name", not {target!r}')
    where, _, attribute = target.rpartition(":")
    try:
        module = _module(path, what, module_name.replace("-", "_"), where)
    except ConfigError:
        raise
    except Exception as exc:
        raise ConfigError(f"{what}: importing {where} failed: {type(exc).__name__}: {exc}") from exc
    if not hasattr(module, attribute):
        raise ConfigError(f'{what}: {where} has no "{attribute}"')
    return getattr(module, attribute)


def _module(path: Path, what: str, name: str, where: str) -> ModuleType:
    if not where.endswith(".py"):
        return importlib.import_module(where)
    file = (path.parent / where).resolve()
    if not file.is_file():
        raise ConfigError(f"{what}: {file} does not exist")
    dotted = _dotted(file)
    if dotted is not None:
        return importlib.import_module(dotted)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{what}: {file} cannot be imported")
    if str(file.parent) not in sys.path:
        _refuse_collisions(file.parent)
        sys.path.append(str(file.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _dotted(file: Path) -> str | None:
    """Returns the module's name inside its package, so that its relative imports work; None outside a package."""
    parts = [file.stem]
    folder = file.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    if len(parts) == 1 or str(folder) not in sys.path:
        return None
    return ".".join(parts)


def _takes_config(factory: Any) -> bool:
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def _tell_what_is_replaced(graph_id: str, graph: AnyGraph) -> None:
    own = [name for name in ("checkpointer", "store") if getattr(graph, name) is not None]
    if own:
        log.warning(
            'graph "%s" brings its own %s, which PostgreSQL replaces here', graph_id, " and ".join(own)
        )


def _compiled(graph_id: str, made: Any) -> AnyGraph:
    if isinstance(made, StateGraph):
        made = cast("Any", made).compile()
    if not isinstance(made, Pregel):
        raise ConfigError(f'graph "{graph_id}": its factory returned a {type(made).__name__}, not a graph')
    return cast("AnyGraph", made)
