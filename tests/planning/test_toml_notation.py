"""Plugins and texts are written as a plan has them."""

import tomllib

from overheard.learning.models.mlp import Mlp
from overheard.planning.toml_notation import plan_value, toml_text


def test_a_plan_names_only_settings_that_differ():
    assert plan_value(Mlp()) == '"mlp"'
    assert plan_value(Mlp(hidden=(8,))) == '{ kind = "mlp", hidden = [8] }'
    assert toml_text('a"\n\x7f') == '"a\\"\\n\\u007f"'


def test_a_text_is_read_back_as_it_is():
    text = 'a"\\\n\x00\x1b\x7f\x85 \u00e9 \u202e \U0001f600 photos'
    assert toml_text(text).isascii()
    assert tomllib.loads(f"key = {toml_text(text)}") == {"key": text}
