"""Owns the restriction of statements to the rows that somebody may see, by the rows' metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from psycopg.types.json import Jsonb

from adapter.errors import Forbidden

_SCALARS = (str, int, float, bool)


class BadFilter(ValueError):
    """An authorization handler returned a filter that is not understood; nothing may be shown."""


@dataclass(frozen=True, slots=True)
class Only:
    """Rows whose metadata contains one of these objects, as PostgreSQL's `@>` contains; None is every row.

    In an object each scalar stands for equality, each list for an array that has all of its elements.
    """

    any_of: tuple[Mapping[str, Any], ...] | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Only:
        """Returns the restriction that LangGraph's filter means: `{"a": 1, "b": {"$eq": 2}, "c": {"$contains": 3}}`.

        All fields must match. `{"$or": [filter, …]}`, alone, is one of several.

        Raises:
            BadFilter: it is none.
        """
        if "$or" in given:
            several = given["$or"]
            if len(given) != 1 or not isinstance(several, list) or not several:
                raise BadFilter('"$or" stands alone and has a list of filters')
            return cls(tuple(_object(one) for one in cast("list[Any]", several)))
        return cls((_object(given),)) if given else EVERYTHING

    def sql(self) -> list[Jsonb] | None:
        """Returns it as the parameter `only` of a statement."""
        return None if self.any_of is None else [Jsonb(dict(one)) for one in self.any_of]

    def admits(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a row with this metadata is among them."""
        return self.any_of is None or any(_contains(metadata, one) for one in self.any_of)

    def stamped(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the metadata of a row that is made under the restriction, so that it is among them.

        Raises:
            Forbidden: the metadata says something else where the restriction asks for a list's elements.
        """
        if self.any_of is None or self.admits(metadata):
            return dict(metadata)
        first = self.any_of[0]
        made = {
            **metadata,
            **{k: v for k, v in first.items() if k not in metadata or not isinstance(v, list)},
        }
        if not self.admits(made):
            raise Forbidden("Forbidden")
        return made


EVERYTHING: Final = Only()


def _object(given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise BadFilter("a filter is an object")
    return {str(k): _field(k, v) for k, v in cast("Mapping[object, object]", given).items()}


def _field(name: object, value: object) -> Any:
    if str(name).startswith("$"):
        raise BadFilter(f'"{name}" is not known here')
    if isinstance(value, Mapping):
        operators = cast("Mapping[str, Any]", value)
        if set(operators) == {"$contains"}:
            wanted = operators["$contains"]
            elements: list[Any] = cast("list[Any]", wanted) if isinstance(wanted, list) else [wanted]
            if all(isinstance(element, _SCALARS) for element in elements):
                return list(elements)
        elif set(operators) == {"$eq"}:
            value = operators["$eq"]
    if isinstance(value, _SCALARS):
        return value
    # Also None, which is what a handler that reads a missing field returns by mistake.
    raise BadFilter(
        f'the filter of "{name}" is neither a scalar nor {{"$eq": scalar}} nor {{"$contains": scalars}}'
    )


def _contains(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    for name, value in wanted.items():
        held = metadata.get(name)
        if isinstance(value, list):
            elements = cast("Sequence[Any]", held) if isinstance(held, list) else None
            if elements is None or not all(
                any(_same(e, v) for e in elements) for v in cast("list[Any]", value)
            ):
                return False
        elif not _same(held, value):
            return False
    return True


def _same(one: object, other: object) -> bool:
    """Equality of JSON scalars: true is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)
