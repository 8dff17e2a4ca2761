"""Descriptions in the schema are those of docstrings and of keys."""

import tomllib
from dataclasses import dataclass
from typing import Any

import pytest

from overheard.gate.policy import Policy
from overheard.plans.plan import Plan
from overheard.plans.schema.described_schema import described_schema
from overheard.plans.schema.docstrings import read_arguments, read_description
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


@dataclass
class _Vehicle:
    """A thing on wheels.

    It moves.

    Args:
        wheels: how many it has.
        owner: who has it;
            "nobody": it is free.

    Returns:
        nothing: at all.

    """

    wheels: int
    owner: str


@dataclass
class _Car(_Vehicle):
    """A car.

    Args:
        wheels: always four.

    """


def test_a_class_is_described_by_the_paragraphs_before_its_sections():
    assert read_description(_Vehicle) == "A thing on wheels.\n\nIt moves."


def test_a_setting_is_described_by_all_lines_of_its_entry():
    assert read_arguments(_Vehicle) == {
        "wheels": "how many it has.",
        "owner": 'who has it; "nobody": it is free.',
    }


def test_settings_of_a_parent_are_described_too_and_a_child_can_say_more():
    assert read_arguments(_Car)["wheels"] == "always four."
    assert read_arguments(_Car)["owner"].startswith("who has it")


SCHEMA = described_schema(Plan)


def key(definition: str, name: str) -> dict[str, Any]:
    return SCHEMA["$defs"][definition]["properties"][name]


@pytest.mark.parametrize("table", [Plan, Policy])
def test_every_key_has_a_description(table: type[Plan] | type[Policy]):
    schema = described_schema(table)
    missing = [
        f"{title}.{name}"
        for title, one in {"": schema, **schema["$defs"]}.items()
        for name, property_ in one.get("properties", {}).items()
        if len(property_.get("description", "")) < 4
    ]
    assert missing == [], "describe it under `Args:` in the docstring of its class"


def test_a_plugin_is_described_by_its_own_class():
    assert key("LocalDp", "clip")["description"] == (
        "largest L2 norm of an update before noise."
    )
    assert "fitted" not in SCHEMA["$defs"]["LocalDp"]["description"]


def test_ranges_are_those_that_the_classes_accept():
    assert key("Dropout", "rate")["minimum"] == 0
    assert key("Dropout", "rate")["exclusiveMaximum"] == 1
    assert key("Mlp", "hidden").get("minimum") is None
    assert key("Lira", "models")["anyOf"][0]["minimum"] == 4
    assert "maximum" not in key("Mnist", "shrink")
    assert "minimum" not in key("Ham10000", "side")


def test_the_schema_accepts_and_names_what_the_plain_one_does():
    plain = Plan.model_json_schema()
    assert SCHEMA.keys() == plain.keys()
    assert SCHEMA["required"] == plain["required"]
    names = {title: list(one.get("properties", {})) for title, one in plain["$defs"].items()}
    described = {t: list(one.get("properties", {})) for t, one in SCHEMA["$defs"].items()}
    assert names == described
