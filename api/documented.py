"""Owns the OpenAPI document: FastAPI's, with the bodies that the routes read by themselves and what they answer.

What they answer is told by the table in `api/answers.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, cast

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import TypeAdapter

from api.answers import ANSWERS, Answers, refusals
from api.bodies import Body, BodyOf
from api.schemas.answers import Refusal

_REFERENCE = "#/components/schemas/{model}"
_SELECTED = "Selected"
_EVENTS = {
    "itemSchema": {
        "type": "object",
        "required": ["event", "data"],
        "properties": {
            "event": {"type": "string"},
            "data": {"type": "string", "contentMediaType": "application/json"},
            "id": {
                "type": "string",
                "description": "Its place in the run; `Last-Event-ID` when joining again.",
            },
        },
    },
}


def documented(app: FastAPI, routers: Sequence[APIRouter]) -> dict[str, Any]:
    """Returns the application's OpenAPI document, made once."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, routes=app.routes)
        # FastAPI's own are for a refusal that this server does not send (`api/errors.py`).
        schemas: dict[str, Any] = {}
        document["components"] = {"schemas": schemas}
        for route, method in _shown(routers):
            operation = document["paths"][route.path][method.lower()]
            model = _body_of(route)
            if model is not None:
                operation["requestBody"] = {"required": True, "content": _json(_schema(model, schemas))}
            name = f"{method} {route.path}"
            operation["responses"] = _responses(
                ANSWERS[name], refusals(name, has_body=model is not None), schemas
            )
        app.openapi_schema = document
    return app.openapi_schema


def check_answers(routes: Sequence[str]) -> None:
    """Looks that the table has each route, as "METHOD path".

    Raises:
        RuntimeError: it lacks one.
    """
    for route in routes:
        if route not in ANSWERS:
            raise RuntimeError(f"{route} has no entry in api/answers.py; say what it answers")


def _shown(routers: Sequence[APIRouter]) -> Iterator[tuple[APIRoute, str]]:
    routes = (route for router in routers for route in router.routes if isinstance(route, APIRoute))
    for route in routes:
        if route.include_in_schema:
            for method in route.methods or ():
                yield route, method


def _body_of(route: APIRoute) -> type[Body] | None:
    calls = (needed.call for needed in route.dependant.dependencies)
    return next((cast("BodyOf[Body]", call).model for call in calls if isinstance(call, BodyOf)), None)


def _responses(answers: Answers, refused: set[int], schemas: dict[str, Any]) -> dict[str, Any]:
    told: dict[int, Any] = {status: {} for status in answers.empty}
    if answers.stream:
        told[200] = {"content": {"text/event-stream": _EVENTS}}
    elif answers.ok is not None:
        told[200] = {"content": _json(_schema(answers.ok, schemas, selected=answers.selected))}
    for status in refused:
        told[status] = {"content": _json(_schema(Refusal, schemas))}
    return {
        str(status): {"description": HTTPStatus(status).phrase, **told[status]} for status in sorted(told)
    }


def _json(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _schema(kind: Any, schemas: dict[str, Any], *, selected: bool = False) -> dict[str, Any]:
    """Returns the schema of a type, whose parts go to `schemas`.

    Args:
        kind: the type.
        schemas: of the document.
        selected: whether the objects of this list have only those fields that the request names.
    """
    read = isinstance(kind, type) and issubclass(kind, Body)
    schema: dict[str, Any] = TypeAdapter(cast("Any", kind)).json_schema(
        ref_template=_REFERENCE, mode="validation" if read else "serialization"
    )
    parts: dict[str, Any] = schema.pop("$defs", {})
    if "title" in schema and "properties" in schema:
        name = str(schema["title"])
        parts[name] = schema
        schema = {"$ref": _REFERENCE.format(model=name)}
    if selected:
        name = str(schema["items"]["$ref"]).rpartition("/")[2]
        parts[_SELECTED + name] = {key: told for key, told in parts[name].items() if key != "required"}
        schema = {**schema, "items": {"$ref": _REFERENCE.format(model=_SELECTED + name)}}
    for name, part in parts.items():
        if schemas.setdefault(name, part) != part:
            raise RuntimeError(
                f"two types that the API reads or answers are called {name}; rename one of them"
            )
    return schema
