"""What the tables of a plan have in common, and how they are read."""

import json
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, WrapValidator

from overheard.core.errors import AuditError, PlanError


class StrictTable(BaseModel):
    """A table of a plan: unknown keys and wrong types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def with_tuples(value: object) -> object:
    """A plan's arrays as the tuples that settings are: strict checks tell the two apart."""
    if isinstance(value, dict):
        return {key: with_tuples(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return tuple(with_tuples(inner) for inner in value)
    return value


def _as_a_mistake(value: object, validate: Callable[[object], object]) -> object:
    try:
        return validate(with_tuples(value))
    except AuditError as error:
        raise ValueError(str(error)) from error


CHECKS_ITSELF = WrapValidator(_as_a_mistake)
"""Marks a field that is a dataclass, whose own refusal is told as a mistake with its place."""

T = TypeVar("T", bound=StrictTable)


def refuse_repeats(names: Sequence[str]) -> None:
    """Raise `ValueError`, naming what is given more than once."""
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"given more than once: {', '.join(repeated)}")


def read_table(kind: type[T], path: Path, called: str) -> T:
    """The table that a TOML file is.

    Args:
        kind: of table.
        path: of the file.
        called: what such a file is called in errors, such as "plan".

    Raises:
        PlanError: if the file cannot be read or is no such table; every mistake is told at
            once, each with its place.

    """
    try:
        return parse_table(kind, path.read_text(encoding="utf-8"), str(path), called)
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"{path}: cannot be read as a {called}: {error}") from error


def parse_table(kind: type[T], text: str, place: str, called: str) -> T:
    """The table that this TOML spells; `place` is named in errors. Raises as `read_table`."""
    try:
        # Through JSON, as there an array may stand for a tuple and yet all else is strict.
        tables = json.dumps(tomllib.loads(text))
    except TypeError as error:
        raise PlanError(f"{place}: dates have no place in a {called}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise PlanError(f"{place}: not TOML: {error}") from error
    try:
        return kind.model_validate_json(tables)
    except ValidationError as error:
        mistakes = _mistakes(error, called)
        raise PlanError("\n".join([f"{place}: {len(mistakes)} to mend", *mistakes])) from error


def _mistakes(error: ValidationError, called: str) -> list[str]:
    found = error.errors(include_url=False, include_input=False)
    places = [mistake["loc"] for mistake in found]
    above = {place[:depth] for place in places for depth in range(len(place))}
    lines = []
    for mistake in found:
        # A list whose one item is wrong counts as empty besides, which would only confuse.
        if mistake["type"] == "too_short" and mistake["loc"] in above:
            continue
        where = ".".join(str(step) for step in mistake["loc"]) or called
        # Of a dataclass pydantic says it in the words of Python.
        is_unknown = mistake["type"] == "unexpected_keyword_argument"
        said = "Extra inputs are not permitted" if is_unknown else mistake["msg"]
        lines.append(f"  {where}: {said.removeprefix('Value error, ')}")
    return lines
