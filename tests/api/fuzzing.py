"""Requests generated from the OpenAPI document, some as it says and some not, and what every answer to them must keep.

Where a path or a body names something, most requests name what is there, or nearly all would end at a 404.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any, cast

import hypothesis
import requests
import schemathesis
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis import checks as general
from schemathesis.specs.openapi import checks

CHECKS: list[Any] = [
    cast("Any", general).not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
# A run that a request asked to begin later must not keep the test waiting.
_SOON_SECONDS = 0.05


@dataclass(frozen=True)
class Known:
    """Values of path parameters that are there, such as a thread with one of its runs."""

    paths: tuple[dict[str, str], ...]
    graphs: tuple[str, ...]


def fuzz(document: dict[str, Any], url: str, route: str, known: Known) -> int:
    """Sends generated requests to a route, as "METHOD path"; returns how many.

    Environment: `EXAMPLES` is how many, `SEED` chooses others than the usual ones.

    Raises:
        AssertionError: an answer is not as the document says.
    """
    method, path = route.split(" ")
    schema: Any = schemathesis.openapi.from_dict(document)
    operation = schema[path][method]
    modes = [
        operation.as_strategy(generation_mode=mode)
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    ]
    examples, seed = int(os.environ.get("EXAMPLES", "8")), os.environ.get("SEED")
    sent = 0
    session = requests.Session()
    session.trust_env = False

    @hypothesis.settings(
        max_examples=examples,
        derandomize=seed is None,
        database=None,
        deadline=None,
        suppress_health_check=list[Any](hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
    )
    @hypothesis.given(case=st.one_of(modes), data=st.data())
    def send(case: Any, data: st.DataObject) -> None:
        nonlocal sent
        _name_what_is_there(case, data, known)
        case.call_and_validate(base_url=url, session=session, checks=CHECKS, timeout=20)
        sent += 1

    run: Callable[[], None] = send if seed is None else hypothesis.seed(int(seed))(send)
    with session:
        run()
    return sent


def apart() -> ProcessPoolExecutor:
    """Returns a process that sends requests by `fuzz_apart`.

    Not a thread of this one: Hypothesis has a callback run at every collection of garbage, which lets another thread in
    amid an `ast.parse`, and CPython before 3.11.9 fails when both parse (gh-106905).
    """
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


def fuzz_apart(document: dict[str, Any], url: str, route: str, known: Known) -> int:
    """Does what `fuzz` does, and raises what can be told to another process."""
    try:
        return fuzz(document, url, route, known)
    except (Exception, BaseExceptionGroup) as exc:
        raise AssertionError("".join(traceback.format_exception(exc))) from None


def _name_what_is_there(case: Any, data: st.DataObject, known: Known) -> None:
    if case.path_parameters and data.draw(st.integers(0, 4)):
        there = data.draw(st.sampled_from(known.paths))
        case.path_parameters = {name: there.get(name, given) for name, given in case.path_parameters.items()}
    if not isinstance(case.body, dict):
        return
    body = cast("dict[str, Any]", case.body)
    if "assistant_id" in body and data.draw(st.integers(0, 4)):
        body["assistant_id"] = data.draw(st.sampled_from(known.graphs))
    if isinstance(body.get("after_seconds"), (int, float)) and body["after_seconds"] > _SOON_SECONDS:
        body["after_seconds"] = _SOON_SECONDS


def name_of(route: str) -> str:
    """Returns a test's id for a route."""
    return re.sub(r"[{}]", "", route).replace(" ", "")
