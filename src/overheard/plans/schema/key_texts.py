"""Words for the parts of a key's JSON schema: its type, its range and its values as TOML."""

from collections.abc import Iterator
from typing import Any

import tomli_w

from overheard.plans.schema.described_schema import JsonSchema

_TYPES = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "`true` or `false`",
    "object": "table",
}

_PLUGIN = "name or table of a plugin"

LARGEST = 2**31 - 1
"""The largest whole number of a plan; a range that ends there is told without its end."""


def type_text(schema: JsonSchema) -> str:
    """Return what a key holds, such as "whole number or list of 2 whole numbers"."""
    return " or ".join(dict.fromkeys(_type_texts(schema)))


def _type_texts(schema: JsonSchema) -> Iterator[str]:
    parts = schema.get("anyOf", ())
    # The names of plugins alone are an alternative to their tables.
    is_plugin = any("discriminator" in part for part in parts)
    for part in parts:
        if not (is_plugin and "enum" in part):
            yield from _type_texts(part)
    if "discriminator" in schema:
        yield _PLUGIN
    elif "$ref" in schema:
        yield "table"
    elif "enum" in schema or "const" in schema:
        yield ", ".join(f"`{toml_value(one)}`" for one in _choices(schema))
    elif schema.get("type") == "array":
        yield _list_text(schema)
    elif schema.get("type") in _TYPES:
        yield _TYPES[schema["type"]]


def _choices(schema: JsonSchema) -> list[Any]:
    return list(schema.get("enum", [schema.get("const")]))


def _list_text(schema: JsonSchema) -> str:
    if "prefixItems" in schema:
        parts = list(dict.fromkeys(map(type_text, schema["prefixItems"])))
        return f"list of {len(schema['prefixItems'])}: {', '.join(parts)}"
    inner = type_text(schema.get("items", {}))
    return "list of plugins" if inner == _PLUGIN else f"list of: {inner}"


def range_text(schema: JsonSchema) -> str:
    """Return the range of a key's numbers and the length of its list; "" if it has none."""
    return "; ".join(dict.fromkeys(_range_texts(schema)))


def _range_texts(schema: JsonSchema) -> Iterator[str]:
    if text := _range_text(schema):
        yield text
    for part in schema.get("anyOf", ()):
        yield from _range_texts(part)
    items = [schema["items"]] if isinstance(schema.get("items"), dict) else []
    for part in (*schema.get("prefixItems", ()), *items):
        yield from (f"each {text}" for text in _range_texts(part))


def _range_text(schema: JsonSchema) -> str:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    if below is not None and below > LARGEST:
        below = None
    ends = [
        f"above {above:,.12g}" if above is not None else "",
        f"at least {low:,.12g}" if low is not None else "",
        f"below {below:,.12g}" if below is not None else "",
        f"at most {high:,.12g}" if high is not None else "",
        "one or more" if schema.get("minItems") == 1 else "",
        f"at most {schema['maxLength']} characters" if "maxLength" in schema else "",
    ]
    return ", ".join(filter(None, ends))


def toml_value(value: object) -> str:
    """Return a value as one line of TOML, as on the right of `key = `.

    >>> toml_value({"kind": "mlp", "hidden": [64]})
    '{ kind = "mlp", hidden = [64] }'
    """
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {toml_value(one)}' for key, one in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    return tomli_w.dumps({"k": value}).strip().removeprefix("k = ")
