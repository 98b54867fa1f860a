"""Owns the way from a request's bytes to a model: size, JSON whatever the content type, one-line refusals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, cast

import orjson
from fastapi import Request
from pydantic import BaseModel, ConfigDict, ValidationError

from adapter.errors import Invalid
from api.errors import TooLarge, one_line

# PostgreSQL's jsonb takes more, but what is nested deeper than this no serializer on the way takes.
_DEEPEST = 200
_RESERVED = "turns_"


class Body(BaseModel):
    """A request body. Liberal: unknown fields are ignored, null is the same as absent."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore", frozen=True)
    # Fields that an auth handler may change.
    handlers_change: ClassVar[tuple[str, ...]] = ("metadata",)
    # Whether the handler is asked when the body is read; if not, the route asks.
    shown_to_handlers: ClassVar[bool] = True

    def asked(self) -> dict[str, Any]:
        """Returns what an auth handler is shown."""
        return dict(self)

    @classmethod
    def given(cls, body: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what the client said, without nulls; a subclass may rewrite more."""
        return {name: value for name, value in body.items() if value is not None}

    @classmethod
    def of(cls, raw: bytes) -> Self:
        """Returns the model of a request's bytes.

        Raises:
            Invalid: they are not what the route expects, or hold what cannot be stored.
        """
        body = decode(raw)
        if not isinstance(body, Mapping):
            raise Invalid("The request body must be a JSON object")
        return cls._validated(cls.given(cast("Mapping[str, Any]", body)), raw)

    @classmethod
    def _validated(cls, given: dict[str, Any], raw: bytes) -> Self:
        if b"\\u0000" in raw:
            _refuse_nul(given)
        try:
            return cls.model_validate(given)
        except ValidationError as exc:
            raise Invalid(one_line(exc.errors(include_input=False, include_url=False))) from None


M = TypeVar("M", bound=Body)


class _Access(Protocol):
    """What `api/access.py` has left in the request's state."""

    async def with_body(self, body: M) -> M: ...


@dataclass(frozen=True, slots=True)
class BodyOf(Generic[M]):
    """The dependency that reads a request's body as `model`, and shows it to the auth handler of the route."""

    model: type[M]

    async def __call__(self, request: Request) -> M:
        """Returns the request's body."""
        body = self.model.of(await read_body(request))
        return await cast("_Access", request.state.access).with_body(body)


async def read_body(request: Request) -> bytes:
    """Returns a request's body, also to the second who asks.

    Raises:
        TooLarge: it has more bytes than the settings allow.
    """
    read: bytes | None = getattr(request.state, "raw_body", None)
    if read is not None:
        return read
    limit: int = request.app.state.settings.request_bytes
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > limit:
            raise TooLarge(f"The request body is larger than {limit} bytes")
    request.state.raw_body = bytes(raw)
    return request.state.raw_body


def decode(raw: bytes) -> Any:
    """Returns decoded JSON, whose strings are valid Unicode.

    Raises:
        Invalid: it is not JSON, holds half of a surrogate pair, or is nested too deeply.
    """
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise Invalid("Invalid JSON in request body") from None
    if raw.count(b"[") + raw.count(b"{") > _DEEPEST and _deeper_than(body, _DEEPEST):
        raise Invalid(f"The request body is nested more than {_DEEPEST} levels deep")
    return body


def _refuse_nul(value: Any) -> None:
    """Raises Invalid when a string holds NUL, which PostgreSQL stores neither as text nor in JSON."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if "\x00" in item:
                raise Invalid("The request holds a NUL character, which cannot be stored")
        elif isinstance(item, Mapping):
            stack.extend(cast("Mapping[Any, Any]", item).keys())
            stack.extend(cast("Mapping[Any, Any]", item).values())
        elif isinstance(item, list):
            stack.extend(cast("list[Any]", item))


def refuse_reserved(metadata: dict[str, Any]) -> dict[str, Any]:
    """Returns a client's metadata.

    Raises:
        ValueError: it uses keys that this server keeps for itself.
    """
    for key in metadata:
        if key.startswith(_RESERVED):
            raise ValueError(f'keys that start with "{_RESERVED}" are reserved, "{key}" is one')
    return metadata


def without_reserved(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Returns metadata as clients see it."""
    return {key: value for key, value in metadata.items() if not key.startswith(_RESERVED)}


def _deeper_than(value: Any, levels: int) -> bool:
    stack = [(value, 0)]
    while stack:
        item, depth = stack.pop()
        if depth > levels:
            return True
        if isinstance(item, dict):
            stack.extend((v, depth + 1) for v in cast("dict[Any, Any]", item).values())
        elif isinstance(item, list):
            stack.extend((v, depth + 1) for v in cast("list[Any]", item))
    return False
