"""Owns the OpenAPI document: FastAPI's, with the bodies that the routes read by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from api.bodies import Body, BodyOf

_REFERENCE = "#/components/schemas/{model}"


def documented(app: FastAPI, routers: Sequence[APIRouter]) -> dict[str, Any]:
    """Returns the application's OpenAPI document, made once."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, routes=app.routes)
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        for path, method, model in _bodies(routers):
            schema = model.model_json_schema(ref_template=_REFERENCE)
            schemas.update(schema.pop("$defs", {}))
            schemas[model.__name__] = schema
            content = {"application/json": {"schema": {"$ref": _REFERENCE.format(model=model.__name__)}}}
            document["paths"][path][method]["requestBody"] = {"required": True, "content": content}
        app.openapi_schema = document
    return app.openapi_schema


def _bodies(routers: Sequence[APIRouter]) -> Iterator[tuple[str, str, type[Body]]]:
    routes = (route for router in routers for route in router.routes if isinstance(route, APIRoute))
    for route in routes:
        for needed in route.dependant.dependencies:
            if isinstance(needed.call, BodyOf):
                for method in route.methods or ():
                    yield route.path, method.lower(), needed.call.model
