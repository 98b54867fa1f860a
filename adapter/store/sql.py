"""Owns the loading of `queries.sql`: statements by name, so that no SQL text stands anywhere else."""

from __future__ import annotations

import re
from importlib import resources
from typing import LiteralString, cast

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def _load() -> dict[str, LiteralString]:
    text = resources.files("adapter.store").joinpath("queries.sql").read_text("utf-8")
    parts = _NAME.split(text)
    named = zip(parts[1::2], parts[2::2], strict=True)
    # The file ships with the code, so its text is as trusted as a literal.
    return {name: cast("LiteralString", _without_comments(body)) for name, body in named}


def _without_comments(body: str) -> str:
    return "\n".join(line for line in body.splitlines() if not line.startswith("--")).strip()


QUERIES = _load()


def query(name: str) -> LiteralString:
    """Returns the statement called `name`.

    Raises:
        KeyError: no statement has this name.
    """
    return QUERIES[name]
