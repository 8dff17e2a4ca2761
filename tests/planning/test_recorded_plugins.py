"""Plugins that a recording states as text are parsed, never run."""

import pytest

from overheard.defenses.local_dp import LocalDp
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.own import Own
from overheard.planning.recorded_plugins import parse_model, parse_plugin, plan_value, toml_text
from overheard.plans.registries import DEFENSES


def test_parses_what_manifests_state():
    dp = LocalDp(clip=2.0, noise_multiplier=0.5)
    assert parse_plugin(repr(dp), DEFENSES) == dp
    assert parse_model(repr(Mlp(hidden=(8, 4)))) == Mlp(hidden=(8, 4))
    assert parse_model("mlp") == Mlp()
    assert parse_model("mine.task:Net") == Own("mine.task:Net")


@pytest.mark.parametrize(
    "text",
    ["", "LeNet-5", "Mlp(hidden=__import__('os'))", "Mlp(3)", "Mlp(wide=1)", "(" * 500, "own"],
)
def test_anything_else_is_no_plugin(text: str):
    assert parse_model(text) is None


def test_a_plan_names_only_settings_that_differ():
    assert plan_value(Mlp()) == '"mlp"'
    assert plan_value(Mlp(hidden=(8,))) == '{ kind = "mlp", hidden = [8] }'
    assert toml_text('a"\n\x7f') == '"a\\"\\n\\u007f"'
