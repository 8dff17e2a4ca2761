"""Checks a document against a JSON schema, as editors do, by the keywords that plans use."""

from collections.abc import Iterator
from typing import Any

TYPES = {
    "object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
    "integer": int, "number": (int, float),
}  # fmt: skip


# Any: a document and a schema are nested JSON values.
def mistakes(value: Any, schema: Any, root: Any, place: str = "") -> Iterator[str]:
    """Yield what the schema does not allow in a document, each with its place."""
    if "$ref" in schema:
        definition = schema["$ref"].removeprefix("#/$defs/")
        yield from mistakes(value, root["$defs"][definition], root, place)
    for key in ("anyOf", "oneOf"):
        fits = [one for one in schema.get(key, ()) if not [*mistakes(value, one, root, place)]]
        if key in schema and (not fits or (key == "oneOf" and len(fits) > 1)):
            yield f"{place}: fits {len(fits)} of {key}"
    if "type" in schema and (
        not isinstance(value, TYPES[schema["type"]])
        or (isinstance(value, bool) and schema["type"] in ("integer", "number"))
    ):
        yield f"{place}: no {schema['type']}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place}: not in {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{place}: not {schema['const']}"
    if isinstance(value, dict):
        yield from _mistakes_of_table(value, schema, root, place)
    if isinstance(value, list):
        inner = schema.get("prefixItems") or [schema.get("items", {})] * len(value)
        for number, (item, one) in enumerate(zip(value, inner, strict=False)):
            yield from mistakes(item, one, root, f"{place}[{number}]")
    if isinstance(value, int | float) and not isinstance(value, bool):
        bounds = (
            value >= schema.get("minimum", value),
            value <= schema.get("maximum", value),
            value > schema.get("exclusiveMinimum", value - 1),
            value < schema.get("exclusiveMaximum", value + 1),
        )
        if not all(bounds):
            yield f"{place}: {value} is out of range"


def _mistakes_of_table(
    value: dict[str, Any], schema: Any, root: Any, place: str
) -> Iterator[str]:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{place}: {name} is missing"
    for name, inner in value.items():
        if name in properties:
            yield from mistakes(inner, properties[name], root, f"{place}.{name}")
        elif schema.get("additionalProperties") is False:
            yield f"{place}: {name} is unknown"
