"""Plugins in a plan: a name and settings."""

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from overheard.core.plugin_registry import PluginRegistry
from overheard.core.split import Split
from overheard.learning.model import Model
from overheard.learning.models.mlp import Mlp
from overheard.plans.plugin_field import PluginField, plugin_label, plugin_table
from overheard.plans.registries import ATTACKS, DATASETS, DEFENSES, MODELS, SPLITS
from overheard.questions.label_shares.attacks.decaf import Decaf

SplitField = Annotated[Split, PluginField(SPLITS)]
ModelField = Annotated[Model, PluginField(MODELS)]

WITH_DEFAULTS = [
    (kind, name)
    for kind in (ATTACKS, DEFENSES, DATASETS, SPLITS, MODELS)
    for name in kind.plugins()
    if name not in ("own", "shares", "no_examples", "unknown")
]


class SmallPlan(BaseModel):
    """A minimal plan with two plugins."""

    model_config = ConfigDict(extra="forbid", strict=True)
    split: SplitField
    model: ModelField


SPLIT = TypeAdapter[Split](SplitField)


@pytest.mark.parametrize("given", ["dirichlet_", "Dirichlet", "", "../iid", "_shelf"])
def test_refuses_an_unknown_name_and_lists_the_known_ones(given: str):
    for value in (given, {"kind": given}):
        with pytest.raises(ValidationError, match=r"name one of .*dirichlet.*iid"):
            SPLIT.validate_python(value)


@pytest.mark.parametrize(
    "given",
    ["3", "null", "[]", "{}", '{"alpha": 1}', '{"kind": 3}', '{"kind": ["iid"]}', "true"],
)
def test_refuses_values_that_are_no_plugin(given: str):
    with pytest.raises(ValidationError, match="name one of"):
        SPLIT.validate_json(given)


@pytest.mark.parametrize(
    ("settings", "path", "kind"),
    [
        ('"alpha": "0.5"', ("split", "dirichlet", "alpha"), "float_type"),
        ('"alpha": true', ("split", "dirichlet", "alpha"), "float_type"),
        ('"beta": 1', ("split", "dirichlet", "beta"), "extra_forbidden"),
        ('"alpha": -1', ("split", "dirichlet", "alpha"), "greater_than"),
        ('"alpha": NaN', ("split", "dirichlet", "alpha"), "finite_number"),
    ],
)
def test_refuses_wrong_settings_with_their_location(
    settings: str, path: tuple[str, ...], kind: str
):
    text = '{"split": {"kind": "dirichlet", ' + settings + '}, "model": "mlp"}'
    with pytest.raises(ValidationError) as refused:
        SmallPlan.model_validate_json(text)
    (mistake,) = refused.value.errors()
    assert mistake["loc"] == path
    assert mistake["type"] == kind


def test_lists_errors_of_two_plugins_at_once():
    # One raises a PlanError, the other a ValueError.
    wrong = {
        "split": {"kind": "shares", "compositions": [[0.5]]},
        "model": {"kind": "transformer", "width": 3, "heads": 1},
    }
    with pytest.raises(ValidationError) as refused:
        SmallPlan.model_validate(wrong)
    assert [mistake["loc"] for mistake in refused.value.errors()] == [("split",), ("model",)]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), WITH_DEFAULTS, ids=lambda x: getattr(x, "name", x))
def test_the_table_of_a_plugin_gives_the_same_plugin(kind: PluginRegistry[Any], name: str):
    adapter = TypeAdapter[Any](Annotated[kind.contract, PluginField(kind)])
    part = kind.plugins()[name]()
    assert adapter.validate_python(plugin_table(part)) == part
    assert adapter.validate_json(adapter.dump_json(part)) == part
    assert plugin_label(part) == name


def test_a_label_has_only_settings_that_differ_from_the_defaults():
    assert plugin_label(Decaf()) == "decaf"
    assert (
        plugin_label(Decaf(calibrator=False, threshold=0.1))
        == "decaf(calibrator=False, threshold=0.1)"
    )
    assert plugin_label(Mlp(hidden=(8, 4))) == "mlp(hidden=(8, 4))"
