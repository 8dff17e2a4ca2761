"""The schema tells of every key what it means and which numbers it takes."""

from typing import Any

import pytest

from overheard.gate.policy import Policy
from overheard.plans.plan import Plan
from overheard.plans.schema.described_schema import described_schema

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
