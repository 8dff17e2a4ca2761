"""Adds to a JSON schema what docstrings say of keys, and the ranges that classes accept."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from overheard.core.errors import AuditError
from overheard.plans.plugin_field import SettingsModel
from overheard.plans.schema.accepted_range import Number, accepted_range
from overheard.plans.schema.docstrings import read_arguments, read_description

# Any: a JSON schema is a nested table of JSON values.
JsonSchema = dict[str, Any]

KIND = "kind"
"""The key of a plugin's table that names the plugin."""

_KIND_TEXT = "the name of the plugin; with the default settings, the name alone is enough."

BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
"""The keys of a JSON schema that state the range of a number."""

_REQUIRED_TEXT = "package.module:function"
"""Stands for required settings that are texts while the range of another one is asked for."""


def described_schema(table: type[BaseModel]) -> JsonSchema:
    """Return the JSON schema of a table, with a description and the range of every key."""
    return table.model_json_schema(schema_generator=_DescribedSchema)


@final
class _DescribedSchema(GenerateJsonSchema):
    """Describes the tables of a plan and the settings of plugins by their docstrings."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchema:
        """Return the schema of a table of a plan, or of the settings of a plugin."""
        kind, plain = schema["cls"], super().model_schema(schema)
        if not issubclass(kind, SettingsModel):
            return _describe(plain, kind)
        described = _describe(plain, kind.plugin)
        return described | {"required": [KIND, *plain.get("required", ())]}

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchema:
        """Return the schema of a dataclass that is a table of a plan."""
        return _describe(super().dataclass_schema(schema), schema["cls"])


def inner_schemas(schema: JsonSchema) -> Iterator[JsonSchema]:
    """Yield a key's schema, its alternatives, and those of the items of its list."""
    yield schema
    for part in schema.get("anyOf", ()):
        yield from inner_schemas(part)
    if isinstance(schema.get("items"), dict):
        yield from inner_schemas(schema["items"])


def _describe(schema: JsonSchema, kind: type) -> JsonSchema:
    texts = {KIND: _KIND_TEXT, **read_arguments(kind)}
    properties = {
        name: {
            **_with_range(property_, kind, name),
            **({"description": texts[name]} if name in texts else {}),
        }
        for name, property_ in schema.get("properties", {}).items()
    }
    described = {"description": text} if (text := read_description(kind)) else {}
    return schema | described | ({"properties": properties} if properties else {})


def _with_range(schema: JsonSchema, kind: type, name: str) -> JsonSchema:
    """Return the schema of a key with the range of its number, where it states none."""
    if not is_dataclass(kind):
        return schema
    schema = {**schema, "anyOf": [dict(one) for one in schema.get("anyOf", [])]}
    for part in _numbers(schema):
        is_whole = part["type"] == "integer"
        accepts = _acceptance(kind, name, is_whole)
        known = next(filter(accepts, _likely(schema.get("default"))), None)
        if known is not None:
            part.update(accepted_range(accepts, known, is_whole=is_whole))
    return {key: value for key, value in schema.items() if (key, value) != ("anyOf", [])}


def _numbers(schema: JsonSchema) -> Iterator[JsonSchema]:
    """Yield the parts of a key's schema that are any numbers, without a stated range."""
    for part in (schema, *schema["anyOf"]):
        is_number = part.get("type") in ("integer", "number")
        if is_number and not part.keys() & {*BOUNDS, "enum", "const"}:
            yield part


def _likely(default: object) -> tuple[Number, ...]:
    """Return numbers that a setting may accept, its default first."""
    usual = (1, 2, 0, 64)
    return (default, *usual) if isinstance(default, int | float) else usual


def _required_value(kind: object) -> str | int | tuple[str, str]:
    """Return a value for a required setting of this type."""
    if kind is str:
        return _REQUIRED_TEXT
    return ("first", "second") if kind == tuple[str, ...] else 1


def _acceptance(kind: type, name: str, is_whole: bool) -> Callable[[Number], bool]:
    # Any: settings have any type.
    required: Mapping[str, Any] = {
        field.name: _required_value(field.type)
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is MISSING
    }

    def accepts(number: Number) -> bool:
        try:
            kind(**{**required, name: int(number) if is_whole else float(number)})
        except (ValueError, AuditError):
            return False
        return True

    return accepts
