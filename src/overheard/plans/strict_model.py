"""The base class of a plan's tables, and how TOML files are read as such tables."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import date
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, WrapValidator
from pydantic_core import ErrorDetails

from overheard.core.errors import AuditError, PlanError
from overheard.core.settings import mistake_text
from overheard.disk import reading
from overheard.disk.reading import read_text

MAX_MISTAKES = 100
"""The most mistakes of a file that a message lists."""


MAX_ITEMS = 50_000
"""The most lines, commas and brackets of a file: a mistake in each takes a kilobyte."""


class StrictModel(BaseModel):
    """A table of a plan; unknown keys and wrong types are rejected."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def lists_to_tuples(value: object) -> object:
    """Convert lists to tuples, nested ones too; strict validation of settings needs tuples."""
    if isinstance(value, dict):
        return {key: lists_to_tuples(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return tuple(lists_to_tuples(inner) for inner in value)
    return value


def _as_value_error(value: object, validate: Callable[[object], object]) -> object:
    try:
        return validate(lists_to_tuples(value))
    except AuditError as error:
        raise ValueError(str(error)) from error


SELF_VALIDATING = WrapValidator(_as_value_error)
"""Marks a dataclass field that validates itself, so that its errors have a location."""

T = TypeVar("T", bound=StrictModel)


def check_unique(names: Sequence[str]) -> None:
    """Raise `ValueError` unless names are distinct."""
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise ValueError(f"given more than once: {', '.join(repeated)}")


def read_toml(kind: type[T], path: Path, noun: str, *, has_dates: bool = False) -> T:
    """Read a TOML file as a table.

    Args:
        kind: the class of the table.
        path: the path of the file.
        noun: noun for such a file in errors, such as "plan".
        has_dates: whether such a file may contain dates.

    Raises:
        PlanError: if the file cannot be read or is invalid; it lists all errors with their
            locations.

    """
    return parse_toml(kind, read_text(path, PlanError), str(path), noun, has_dates=has_dates)


def parse_toml(
    kind: type[T], text: str, place: str, noun: str, *, has_dates: bool = False
) -> T:
    """Parse TOML text as a table; errors name `place` as its source. Raises as `read_toml`."""
    if sum(map(text.count, "\n,[")) > MAX_ITEMS:
        raise PlanError(
            f"{place}: a {noun} must not have more than {MAX_ITEMS} lines, commas and brackets"
        )
    try:
        # Through JSON, for which strict validation accepts an array as a tuple.
        tables = json.dumps(
            reading.parse_toml(text, place, PlanError),
            default=_date_text if has_dates else None,
        )
    except TypeError as error:
        dates = "times" if has_dates else "dates"
        raise PlanError(f"{place}: a {noun} must not contain {dates}: {error}") from error
    except RecursionError as error:
        raise PlanError(f"{place}: a {noun} must not be nested as deeply") from error
    try:
        return kind.model_validate_json(tables)
    except ValidationError as error:
        mistakes = _mistakes(error)
        plural = "" if len(mistakes) == 1 else "s"
        count = f"{place}: {len(mistakes)} error{plural} to fix"
        if len(mistakes) > MAX_MISTAKES:
            count += f", of which these are the first {MAX_MISTAKES}"
        keys = _keys_of(kind)
        lines = [_describe(one, noun, keys) for one in mistakes[:MAX_MISTAKES]]
        raise PlanError("\n".join([count, *lines])) from error


@cache
def _keys_of(kind: type[BaseModel]) -> frozenset[str]:
    """Return every key of a table, of the tables in it, and of the plugins that it can name.

    The schema of a plan takes a tenth of a second, so it is made once.
    """
    schema = kind.model_json_schema()
    tables = (schema, *schema.get("$defs", {}).values())
    return frozenset(key for table in tables for key in table.get("properties", {}))


def _date_text(value: object) -> str:
    """Return a date as text; other values that JSON does not know are refused."""
    if type(value) is date:
        return value.isoformat()
    raise TypeError(f"{value!r} is no date such as 2027-01-31")


def _mistakes(error: ValidationError) -> list[ErrorDetails]:
    found = error.errors(include_url=False)
    locations = [mistake["loc"] for mistake in found]
    parents = {location[:depth] for location in locations for depth in range(len(location))}
    # A list whose only item is invalid is also reported as empty, which would confuse.
    return [one for one in found if one["type"] != "too_short" or one["loc"] not in parents]


def _describe(mistake: ErrorDetails, called: str, keys: Collection[str]) -> str:
    where = ".".join(str(step) for step in mistake["loc"]) or called
    # For dataclasses pydantic reports unknown keys in Python's terms.
    is_unknown = mistake["type"] == "unexpected_keyword_argument"
    message = "Extra inputs are not permitted" if is_unknown else mistake_text(mistake)
    if is_unknown or mistake["type"] == "extra_forbidden":
        name = str(mistake["loc"][-1])
        # Another table may have a key of this very name.
        close = get_close_matches(name, [one for one in keys if one != name], n=1)
        message += f": did you mean {close[0]!r}?" if close else ""
    return f"  {where}: {message}"
