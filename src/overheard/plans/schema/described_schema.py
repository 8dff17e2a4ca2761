"""Adds to a JSON schema what docstrings say of keys."""

from collections.abc import Iterator
from typing import Any, final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from overheard.plans.plugin_field import SettingsModel
from overheard.plans.schema.docstrings import read_arguments, read_description

# Any: a JSON schema is a nested table of JSON values.
JsonSchema = dict[str, Any]

KIND = "kind"
"""The key of a plugin's table that names the plugin."""

_KIND_TEXT = "the name of the plugin; with the default settings, the name alone is enough."


def described_schema(table: type[BaseModel]) -> JsonSchema:
    """Return the JSON schema of a table, with a description of every key."""
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
        name: {**key, **({"description": texts[name]} if name in texts else {})}
        for name, key in schema.get("properties", {}).items()
    }
    described = {"description": text} if (text := read_description(kind)) else {}
    return schema | described | ({"properties": properties} if properties else {})
