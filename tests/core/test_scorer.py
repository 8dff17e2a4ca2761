"""Scores compared with uninformed guesses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.scorer import Better, Score

GUESSES = st.dictionaries(st.text(), st.floats(-1e6, 1e6), min_size=1)


@pytest.mark.parametrize(
    ("better", "value", "blind", "gain"),
    [
        ("lower", 0.25, 0.5, 0.25),  # the lower of 0.5 and 1 is the better guess
        ("lower", 0.75, 0.5, -0.25),
        ("higher", 0.25, 1.0, -0.75),  # the higher of both is
        ("higher", 1.5, 1.0, 0.5),
    ],
)
def test_gain_is_the_improvement_over_the_best_uninformed_guess(
    better: Better, value: float, blind: float, gain: float
):
    score = Score("figure", value, better, {"a": 0.5, "b": 1.0}, {})
    assert score.best_uninformed == blind
    assert score.gain == gain


def test_informed_guesses_do_not_affect_the_gain():
    score = Score("l1", 0.2, "lower", {"uniform": 0.5}, {"told": 0.0})
    assert score.gain == pytest.approx(0.3)


@given(st.floats(-1e6, 1e6), GUESSES, st.sampled_from(["lower", "higher"]))
def test_a_gain_is_positive_only_above_every_uninformed_guess(
    value: float, blinds: dict[str, float], better: Better
):
    gain = Score("figure", value, better, blinds, {}).gain
    assert gain is not None
    beats = [value < guess if better == "lower" else value > guess for guess in blinds.values()]
    assert (gain > 0) == all(beats)
