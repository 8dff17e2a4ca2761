"""Valid and invalid recipes, and their number of steps."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.recipe import Recipe


@given(st.integers(0, 10_000), st.integers(1, 500), st.integers(1, 20))
def test_every_example_is_seen_once_an_epoch(examples: int, batch: int, epochs: int):
    steps = Recipe(rate=1.0, epochs=epochs, batch=batch).steps(examples)
    assert (steps - epochs) * batch < examples * epochs or examples == 0
    assert steps * batch >= examples * epochs


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"rate": 0.0}, "rate"),
        ({"rate": -0.1}, "rate"),
        ({"rate": math.inf}, "rate"),
        ({"rate": 1e300}, "rate"),
        ({"epochs": 0}, "epochs"),
        ({"batch": 0}, "batch"),
        ({"momentum": 1.0}, "momentum"),
        ({"momentum": -0.1}, "momentum"),
        ({"momentum": 0.9, "optimizer": "adam"}, "remove it for adam"),
        ({"momentum": 0.9, "optimizer": "adamw"}, "remove it for adamw"),
        ({"weight_decay": -1e-4}, "weight_decay"),
        ({"label_smoothing": -0.1}, "label_smoothing"),
        ({"label_smoothing": 1.0}, "label_smoothing"),
        ({"proximal": -1.0}, "proximal"),
        ({"label_smoothing": 0.1, "loss": "squared_error"}, "remove it for squared_error"),
    ],
    ids=str,
)
def test_refuses_settings_out_of_range(settings: dict[str, Any], word: str):
    whole: dict[str, Any] = {"rate": 0.1, "epochs": 1, "batch": 8} | settings
    with pytest.raises(ValueError, match=word):
        Recipe(**whole)


def test_steps_follow_the_epochs_of_a_client():
    # Two batches of 4 per epoch of 5 examples.
    recipe = Recipe(rate=0.1, epochs=3, batch=4)
    assert (recipe.steps(5), recipe.steps(5, 1)) == (6, 2)
