"""Every key of a plan has an example, and every example is one that a plan accepts."""

import json
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from math import inf, nextafter
from pathlib import Path
from typing import Any

import pytest

from overheard.plans.plan import Plan
from overheard.plans.plugin_field import SettingsModel, settings_model
from overheard.plans.registries import REGISTRIES
from overheard.plans.schema.plan_schema import (
    PlanTable,
    nested_table,
    plan_schema,
    plan_tables,
    plugin_tables,
)
from tests.plans.schema.validator import mistakes

TABLES = {table.path: table for table in plan_tables()}
PLUGINS = plugin_tables()
SCHEMA = plan_schema()

# Any: a plan in TOML is nested tables of any values.
Tables = dict[str, Any]


def minimal() -> Tables:
    """The plan to which each example is added."""
    return {
        "data": {"source": "digits", "split": "iid", "clients": 10, "examples": 100},
        "training": {"model": "logistic", "rounds": 10, "rate": 0.1},
        "threats": [{"attacks": ["decaf"]}],
    }


REQUIRED: Mapping[str, Tables] = {
    "data.shifts": {"client": 1, "round": 2},
    "arms": {"name": "an arm"},
    "threats.virtual.recipes": {"rate": 0.1},
}
"""What an entry of a list needs, beside what `minimal` gives."""


def with_example(path: str, name: str, value: object) -> Tables:
    """The smallest plan that holds one example."""
    plan = minimal()
    if (path, name) == ("epsilon", "attack"):
        plan["threats"] = [{"attacks": [value]}]
    if path == "data.people":
        plan["data"]["split"] = "by_user"
    if name == "auxiliary_from":
        plan["data"]["auxiliary"] = 100
    if path == "threats.virtual.recipes":
        plan["threats"][0]["knows"] = ["auxiliary", "model"]
    table: Any = plan
    steps = path.split(".") if path else []
    for depth, step in enumerate(steps, 1):
        is_list = TABLES[".".join(steps[:depth])].is_list
        table = table.setdefault(step, [{}] if is_list else {})
        table = table[0] if is_list else table
    table |= {**REQUIRED.get(path, {}), name: value}
    return plan


EXAMPLES = [
    (path, name, key["examples"][0])
    for path, table in TABLES.items()
    for name, key in table.keys.items()
    if nested_table(key) is None and "examples" in key
]


@pytest.mark.parametrize("table", [*TABLES.values(), *PLUGINS.values()], ids=lambda t: t.path)
def test_every_key_has_an_example(table: PlanTable):
    missing = [
        name
        for name, key in table.keys.items()
        if nested_table(key) is None and "examples" not in key
    ]
    assert missing == [], "add an example to plans/schema/examples.toml"


@pytest.mark.parametrize(("path", "name", "value"), EXAMPLES)
def test_a_plan_accepts_every_example(path: str, name: str, value: object):
    Plan.model_validate_json(json.dumps(with_example(path, name, value)))


@cache
def models() -> Mapping[str, type[SettingsModel]]:
    """The model of each plugin's settings, by registry and name."""
    return {
        f"{registry.name}.{name}": settings_model(name, plugin)
        for registry in REGISTRIES
        for name, plugin in registry.plugins().items()
    }


@pytest.mark.parametrize("path", PLUGINS)
def test_a_plugin_accepts_every_example(path: str):
    model, table = models()[path], PLUGINS[path]
    required = {name: table.keys[name]["examples"][0] for name in table.required - {"kind"}}
    for name, key in table.keys.items():
        given = required | {name: key["examples"][0]}
        settings = model.model_validate_json(json.dumps(given))
        model.plugin(**{one: getattr(settings, one) for one in given})


BOUNDS: Mapping[str, Callable[[float], tuple[float, ...]]] = {
    "minimum": lambda end: (end - 1, nextafter(end, -inf)),
    "maximum": lambda end: (end + 1, nextafter(end, inf)),
    "exclusiveMinimum": lambda end: (end,),
    "exclusiveMaximum": lambda end: (end,),
}
"""Numbers beyond each kind of bound: the nearest whole number and the nearest fraction."""


@pytest.mark.parametrize("path", PLUGINS)
def test_a_plugin_made_in_python_refuses_numbers_beyond_the_ranges_of_the_schema(path: str):
    plugin, table = models()[path].plugin, PLUGINS[path]
    required = {name: table.keys[name]["examples"][0] for name in table.required - {"kind"}}
    for name, key in table.keys.items():
        for part in (key, *key.get("anyOf", ())):
            for bound in BOUNDS.keys() & part.keys():
                for number in BOUNDS[bound](part[bound]):
                    wrong = int(number) if part["type"] == "integer" else float(number)
                    if wrong == part[bound] and not bound.startswith("exclusive"):
                        continue  # a fraction, of a setting of whole numbers
                    with pytest.raises(ValueError, match=f"{name} must be .*, got"):
                        plugin(**(required | {name: wrong}))


def test_every_example_is_of_a_key_that_exists():
    text = files("overheard.plans.schema").joinpath("examples.toml").read_text("utf-8")
    examples = tomllib.loads(text)
    for registry, plugins in examples.pop("plugins").items():
        for name, settings in plugins.items():
            assert settings.keys() <= PLUGINS[f"{registry}.{name}"].keys.keys()
    given = {path for path in TABLES if _find(examples, path)}
    assert given == TABLES.keys()
    for path, table in TABLES.items():
        assert _find(examples, path).keys() <= table.keys.keys()


def _find(examples: Tables, path: str) -> Tables:
    for step in filter(None, path.split(".")):
        examples = examples.get(step, {})
    return examples


ROOT = Path(__file__).parents[3]

# The schema knows the plugins that are installed, so not those of examples/plugin.
FOLDERS = ("plans", "examples/flower", "examples/nvflare")

PLANS = sorted(path for folder in FOLDERS for path in (ROOT / folder).glob("*.toml"))


@pytest.mark.parametrize(
    "path",
    [path for path in PLANS if path.name not in ("policy.toml", "pyproject.toml")],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_an_editor_finds_no_mistake_in_the_plans_of_the_repository(path: Path):
    assert list(mistakes(tomllib.loads(path.read_text("utf-8")), SCHEMA, SCHEMA)) == []


@pytest.mark.parametrize(("path", "name", "value"), EXAMPLES)
def test_an_editor_finds_no_mistake_in_an_example(path: str, name: str, value: object):
    assert list(mistakes(with_example(path, name, value), SCHEMA, SCHEMA)) == []


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ({"data": {"source": "digit"}}, ".data.source"),
        ({"data": {"split": "shares"}}, ".data.split"),
        ({"data": {"split": {"kind": "dirichlet", "alpha": 0}}}, ".data.split"),
        ({"training": {"rounds": 0}}, ".training.rounds"),
        ({"training": {"round": 3}}, "round is unknown"),
    ],
)
def test_an_editor_finds_a_mistake_at_its_place(wrong: Tables, place: str):
    plan = minimal()
    for table, keys in wrong.items():
        plan[table] |= keys
    assert place in str(list(mistakes(plan, SCHEMA, SCHEMA)))
