"""Settings: dataclasses that check the types and ranges of their fields when they are made."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from reprlib import repr as short_repr
from typing import Annotated, Any, SupportsIndex, get_type_hints

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic_core import ErrorDetails

Positive = Annotated[int, Ge(1), Lt(2**31)]
"""A whole number of 1 or more."""

NotNegative = Annotated[int, Ge(0), Lt(2**31)]
"""A whole number of 0 or more."""

Share = Annotated[float, Ge(0), Le(1)]
"""A part of a whole."""

PositiveShare = Annotated[float, Gt(0), Le(1)]
"""A part of a whole that is not empty."""

MAX_EXAMPLES = 2**53
"""Exclusive upper bound of a client's example count: float64 represents smaller integers."""

MAX_ROUNDS = 10**9
"""Exclusive upper bound of a round number: names of late joiners have at most 9 digits."""

RoundNumber = Annotated[int, Ge(0), Lt(MAX_ROUNDS)]

ExampleCount = Annotated[int, Ge(0), Lt(MAX_EXAMPLES)]

RecordIndex = Annotated[int, Ge(0), Lt(MAX_EXAMPLES)]


class CheckedTable(BaseModel):
    """A table of settings in which nothing is converted, and numbers are finite."""

    model_config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, arbitrary_types_allowed=True
    )


_TAKEN = frozenset(dir(BaseModel))
"""Names that no setting can have, such as "copy" and "schema": pydantic warns of each."""

_WORDS: Mapping[str, str] = {
    "greater_than_equal": "must be {ge} or more",
    "greater_than": "must be above {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be below {lt}",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "tuple_type": "must be a list, in Python a tuple",
    "too_short": "must have {min_length} or more entries",
}


class Settings:
    """Base of dataclasses whose fields are settings.

    A field declares its type and range, such as `rounds: Annotated[int, Ge(1)]`. Whoever makes
    an object with another value gets a `ValueError` that names the field. How fields depend on
    each other is checked in `check_together`, by then each of them in its range.
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        """Refuse a class that would not check its fields."""
        super().__init_subclass__()
        if cls.__post_init__ is not Settings.__post_init__:
            raise TypeError(f"{cls.__name__} defines __post_init__: name it check_together")

    def __post_init__(self) -> None:
        """Check each setting, then how they fit together."""
        check_settings(self)
        self.check_together()

    def check_together(self) -> None:
        """Raise `ValueError` unless the settings fit together; by default they do."""


def check_settings(settings: object) -> None:
    """Check each setting against its declaration.

    Raises:
        ValueError: with every setting that is out of range or of another type.

    """
    kind: type = type(settings)
    model = _model(kind)
    values = {name: getattr(settings, name) for name in model.model_fields}
    try:
        model.__pydantic_validator__.validate_python(values)
    except ValidationError as error:
        mistakes = error.errors(include_url=False)
        raise ValueError(
            "; ".join(f"{_place(one)} {mistake_text(one)}" for one in mistakes)
        ) from error
    for name, value in values.items():
        _refuse_other_numbers(name, value)


def _refuse_other_numbers(place: str, value: object) -> None:
    """Refuse what pydantic takes for a float and is none, such as a tensor.

    The repr of settings is their record, and that of a tensor has four digits.
    """
    if isinstance(value, tuple):
        for number, one in enumerate(value):
            _refuse_other_numbers(f"{place}[{number}]", one)
    # `isinstance(value, SupportsFloat)` takes 15 us, a minute for a manifest of many parties.
    elif hasattr(value, "__float__") and not isinstance(value, int | float):
        raise ValueError(
            f"{place} must be a number, got {short_repr(value)}: convert it by float(...)"
        )


def mistake_text(mistake: ErrorDetails) -> str:
    """Return what is wrong with a value in plain words, such as "must be 1 or more, got 0"."""
    if mistake["type"] in _WORDS:
        ends = mistake.get("ctx", {}).items()
        ranges = {name: f"{end:.12g}" for name, end in ends if isinstance(end, int | float)}
        text = _WORDS[mistake["type"]].format(**ranges)
    else:
        text = mistake["msg"].removeprefix("Value error, ")
        if not text.startswith("Input should be "):
            return text
        text = text.replace("Input should be ", "must be ", 1)
    value = mistake["input"]
    is_convertible = isinstance(value, SupportsIndex) and not isinstance(value, int)
    how = ": convert it by int(...)" if is_convertible else ""
    return f"{text}, got {short_repr(value)}{how}"


# Any: a type as pydantic takes it, and a default of any type.
def declared_settings(kind: type) -> dict[str, Any]:
    """Return the type of each field with its range, and its default, or ... if it has none.

    Raises:
        TypeError: if the name of a setting begins with "_", which pydantic would not check, or
            is that of a method of its models.

    """
    if hidden := [one.name for one in fields(kind) if one.init and one.name.startswith("_")]:
        raise TypeError(
            f"{kind.__name__}: {', '.join(hidden)}: name it without a leading underscore, or "
            "declare it with field(init=False) if it is no setting"
        )
    if taken := [one.name for one in fields(kind) if one.init and one.name in _TAKEN]:
        raise TypeError(
            f"{kind.__name__}: pydantic uses the name {', '.join(taken)} itself: choose another"
        )
    hints = get_type_hints(kind, include_extras=True)
    return {
        field.name: (hints[field.name], ... if default is MISSING else default)
        for field in fields(kind)
        if field.init
        for default in [default_of(field)]
    }


def default_of(field: "Field[Any]") -> object:
    """Return the default of a field; MISSING if it has none."""
    return field.default if field.default_factory is MISSING else field.default_factory()


@cache
def _model(kind: type) -> type[BaseModel]:
    """Return the model of the fields of a class; pydantic takes milliseconds to make it."""
    return create_model(kind.__name__, __base__=CheckedTable, **declared_settings(kind))


def _place(mistake: ErrorDetails) -> str:
    name, *inner = mistake["loc"]
    return "".join([str(name), *(f"[{step}]" for step in inner if isinstance(step, int))])
