"""Types, ranges and values are told in words that a newcomer reads."""

import tomllib

import pytest

from overheard.plans.schema.key_texts import range_text, toml_value, type_text

WHOLE = {"type": "integer", "minimum": 1, "exclusiveMaximum": 2**31}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (WHOLE, "whole number"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "text"),
        ({"enum": ["a", "b"], "type": "string"}, '`"a"`, `"b"`'),
        ({"type": "array", "items": {"type": "number"}}, "list of: number"),
        ({"type": "array", "prefixItems": [WHOLE, WHOLE]}, "list of 2: whole number"),
        ({"discriminator": {}, "oneOf": []}, "name or table of a plugin"),
        ({"anyOf": [{"type": "boolean"}, WHOLE]}, "`true` or `false` or whole number"),
    ],
)
def test_types_in_words(schema, words):
    assert type_text(schema) == words


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (WHOLE, "at least 1"),
        ({"minimum": 0, "maximum": 1_000_000}, "at least 0, at most 1,000,000"),
        ({"exclusiveMinimum": 0, "exclusiveMaximum": 1.0}, "above 0, below 1"),
        ({"anyOf": [WHOLE, {"type": "null"}]}, "at least 1"),
        ({"type": "array", "minItems": 1, "items": WHOLE}, "one or more; each at least 1"),
        ({"type": "string"}, ""),
    ],
)
def test_ranges_in_words(schema, words):
    assert range_text(schema) == words


@pytest.mark.parametrize(
    "value", [1, 0.5, 1e-5, True, 'a "b"', [1, "x"], [], {"kind": "mlp", "hidden": [64]}]
)
def test_a_value_is_one_line_that_toml_reads_back(value):
    line = f"key = {toml_value(value)}"
    assert "\n" not in line
    assert tomllib.loads(line) == {"key": value}
