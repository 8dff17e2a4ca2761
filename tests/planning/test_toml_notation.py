"""Plugins and texts are written as a plan has them."""

from overheard.learning.models.mlp import Mlp
from overheard.planning.toml_notation import plan_value, toml_text


def test_a_plan_names_only_settings_that_differ():
    assert plan_value(Mlp()) == '"mlp"'
    assert plan_value(Mlp(hidden=(8,))) == '{ kind = "mlp", hidden = [8] }'
    assert toml_text('a"\n\x7f') == '"a\\"\\n\\u007f"'
