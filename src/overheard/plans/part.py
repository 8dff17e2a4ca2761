"""Lets a plan name a part of the house by its file and give its settings beside it."""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, Generic, Literal, TypeVar, Union, final, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, create_model
from pydantic_core import CoreSchema, core_schema

from overheard.core.errors import AuditError
from overheard.core.kind import Kind
from overheard.plans.table import with_tuples

T = TypeVar("T")


@final
@dataclass(frozen=True)
class PartOf(Generic[T]):
    """Marks a field of a plan as one part of a kind.

    In a plan a part is `{kind = "decaf", calibrator = false}`, or `"decaf"` alone for the
    default settings; in Python it is the part itself. Its settings are the fields of its
    dataclass, each with its own type; unknown ones are refused.

    Args:
        kind: which parts.

    """

    kind: Kind[T]

    # Any: pydantic hands over whatever annotation this mark stands beside.
    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Tell pydantic to take a table with a `kind`, a name alone, or the part itself."""
        parts = self.kind.parts()
        models = tuple(settings_model(name, part) for name, part in parts.items())
        choice = models[0] if len(models) == 1 else Union[models]  # noqa: UP007
        tagged = Annotated[choice, Field(discriminator="kind")] if len(models) > 1 else choice
        return core_schema.no_info_wrap_validator_function(
            self._take,
            handler.generate_schema(tagged),
            serialization=core_schema.plain_serializer_function_ser_schema(part_record),
        )

    def _take(self, value: object, validate: Callable[[object], BaseModel]) -> T:
        if isinstance(value, self.kind.contract):
            return value
        parts = self.kind.parts()
        given = {"kind": value} if isinstance(value, str) else with_tuples(value)
        if not (isinstance(given, dict) and given.get("kind") in tuple(parts)):
            raise ValueError(
                f"name one of {', '.join(parts)}, or give a table whose `kind` is one of them"
            )
        table = validate(given)
        part = parts[getattr(table, "kind")]  # noqa: B009
        try:
            return part(**{name: getattr(table, name) for name in _names(part)})
        except AuditError as error:
            # As a mistake of this field, so that it is told with its place, beside the others.
            raise ValueError(str(error)) from error


# Any: a part is any frozen dataclass, whose type this module cannot name.
def part_record(part: Any) -> dict[str, Any]:
    """The table that would name this part in a plan, every setting spelled out."""
    settings = {name: getattr(part, name) for name in _names(type(part))}
    return {"kind": part.name} | {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in settings.items()
        if value is not None
    }


def label(part: Any) -> str:
    """A short name: the part's own, with the settings that are not the default ones.

    >>> from overheard.questions.label_shares.attacks.decaf import Decaf
    >>> label(Decaf()), label(Decaf(calibrator=False))
    ('decaf', 'decaf(calibrator=False)')
    """
    changed = [
        f"{field.name}={getattr(part, field.name)!r}"
        for field in fields(part)
        if getattr(part, field.name) != _default(field)
    ]
    return f"{part.name}({', '.join(changed)})" if changed else str(part.name)


def settings_model(name: str, part: type) -> type[BaseModel]:
    """The table that names a part in a plan and gives its settings.

    Raises:
        TypeError: if it is no dataclass, or a plan cannot hold one of its settings.

    """
    hints = get_type_hints(part)
    settings: dict[str, Any] = {
        field.name: (hints[field.name], ... if _default(field) is MISSING else _default(field))
        for field in fields(part)
    }
    return create_model(
        part.__name__,
        __config__=ConfigDict(extra="forbid", strict=True),
        __doc__=(part.__doc__ or "").split("\n", maxsplit=1)[0],
        kind=(Literal[name], name),  # type: ignore[arg-type]
        **settings,
    )


def _default(field: Any) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _names(part: type) -> list[str]:
    return [field.name for field in fields(part)]
