"""The JSON schema of plans, and its tables one by one."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, final

from overheard.plans.plan import Plan
from overheard.plans.registries import ATTACKS, REGISTRIES
from overheard.plans.schema.described_schema import (
    KIND,
    JsonSchema,
    described_schema,
    inner_schemas,
)

_REFERENCE = "#/$defs/"

NO_EXAMPLES: Mapping[str, Any] = MappingProxyType({})
"""What has no examples."""


@final
@dataclass(frozen=True, slots=True)
class PlanTable:
    """A table of a plan, or the settings of a plugin.

    Args:
        path: where it stands in a plan, such as "data.people"; "" = the top of the plan. For
            a plugin its registry and name, such as "attacks.decaf".
        is_list: whether a plan may hold several, as `[[data.shifts]]`.
        schema: its JSON schema; its keys are under "properties".

    """

    path: str
    is_list: bool
    schema: JsonSchema

    @property
    def keys(self) -> Mapping[str, JsonSchema]:
        """The JSON schema of each key, without the name of a plugin."""
        properties: Mapping[str, JsonSchema] = self.schema.get("properties", {})
        return {name: one for name, one in properties.items() if name != KIND}

    @property
    def required(self) -> frozenset[str]:
        """The keys that must be given."""
        return frozenset(self.schema.get("required", ()))


def plan_schema() -> JsonSchema:
    """Return the JSON schema of plans; every key has a description and an example.

    A key that holds another table has no example of its own: that table's keys have one.
    """
    schema = described_schema(Plan)
    examples = _read_examples()
    for table in (*schema_tables(schema), *_plugin_tables(schema)):
        is_plugin = KIND in table.schema.get("properties", {})
        given = _at(examples, f"plugins.{table.path}" if is_plugin else table.path)
        add_examples(table, given, _quick_settings(table.path))
    return schema


def _quick_settings(path: str) -> Mapping[str, Any]:
    """Return the settings of an attack in its contract tests; the path is that of its table."""
    registry, _, name = path.rpartition(".")
    if registry != ATTACKS.name:
        return NO_EXAMPLES
    return ATTACKS.plugins()[name].quick_settings


# Any: an example is a value of any key.
def add_examples(
    table: PlanTable, given: Mapping[str, Any], others: Mapping[str, Any] = NO_EXAMPLES
) -> None:
    """Add to the schema of every key its example, or else its default, or else another value.

    Args:
        table: the table of the keys.
        given: the examples by key.
        others: values of keys without an example, whose default is None.

    """
    for name, key in table.keys.items():
        if nested_table(key) is not None:
            continue
        if name in given:
            key["examples"] = [given[name]]
        elif key.get("default") not in (None, []):
            key["examples"] = [key["default"]]
        elif name in others:
            key["examples"] = [others[name]]


def plan_tables() -> tuple[PlanTable, ...]:
    """Return the tables of a plan, each before the tables within it."""
    return schema_tables(plan_schema())


def plugin_tables() -> Mapping[str, PlanTable]:
    """Return the settings of every plugin that a plan can name, by registry and name."""
    return {table.path: table for table in _plugin_tables(plan_schema())}


def nested_table(key: JsonSchema) -> str | None:
    """Return the definition of the table that a key holds, or that its list holds."""
    for part in inner_schemas(key):
        if "$ref" in part:
            return str(part["$ref"]).removeprefix(_REFERENCE)
    return None


def plugin_registry(key: JsonSchema) -> str | None:
    """Return the registry whose plugins a key names, such as "attacks"."""
    for part in inner_schemas(key):
        if "discriminator" in part:
            names = part["discriminator"]["mapping"].keys()
            return next(one.name for one in REGISTRIES if one.plugins().keys() == names)
    return None


def schema_tables(schema: JsonSchema) -> tuple[PlanTable, ...]:
    """Return the tables of a JSON schema, each before the tables within it."""
    return tuple(_tables_within(schema, schema, "", False))


def _tables_within(
    root: JsonSchema, table: JsonSchema, path: str, is_list: bool
) -> Iterator[PlanTable]:
    yield PlanTable(path, is_list, table)
    for name, key in table["properties"].items():
        definition = nested_table(key)
        if definition is not None:
            inner = f"{path}.{name}" if path else name
            yield from _tables_within(root, root["$defs"][definition], inner, "items" in key)


def _plugin_tables(root: JsonSchema) -> Iterator[PlanTable]:
    """Yield the settings of every plugin; a plugin that two keys name occurs twice."""
    for table in schema_tables(root):
        for key in table.keys.values():
            registry = plugin_registry(key)
            if registry is not None:
                yield from _choices(root, key, registry)


def _choices(root: JsonSchema, key: JsonSchema, registry: str) -> Iterator[PlanTable]:
    for part in inner_schemas(key):
        for name, reference in part.get("discriminator", {}).get("mapping", {}).items():
            schema = root["$defs"][reference.removeprefix(_REFERENCE)]
            yield PlanTable(f"{registry}.{name}", False, schema)


# Any: TOML holds values of any type.
@cache
def _read_examples() -> Mapping[str, Any]:
    text = files("overheard.plans.schema").joinpath("examples.toml").read_text("utf-8")
    return tomllib.loads(text)


def _at(examples: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """Return the examples under a path of table names; {} if there are none."""
    for step in filter(None, path.split(".")):
        examples = examples.get(step, {})
    return examples
