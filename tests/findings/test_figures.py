"""Number formats."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.findings.figures import (
    NO_FIGURE,
    OWN_SCALE,
    Measure,
    beside,
    data_size,
    digits,
    duration,
    rounds_heard,
)
from overheard.findings.row import CONTROL, Row
from overheard.statistics.estimate import Estimate


def test_formats_values_in_the_unit_of_the_measure() -> None:
    points = Measure("Error", "\u00a0points", 100.0)
    assert points.tell(0.042) == "4.2\u00a0points"
    assert points.span(Estimate(0.04, 0.031, 0.052)) == "3.1 to 5.2\u00a0points"
    assert OWN_SCALE.tell(0.25) == "0.25"


def test_a_missing_interval_is_a_dash() -> None:
    assert OWN_SCALE.span(Estimate(0.04, None, None)) == NO_FIGURE


@given(st.floats(-1e6, 1e6))
def test_formatted_numbers_are_close_to_the_value(value: float) -> None:
    written = float(digits(value).replace("−", "-"))
    assert abs(written - value) <= max(0.06 * abs(value), 5e-7)


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (2**20, "1.0 MiB"),
        (5 * 2**50, "5120 TiB"),
    ],
)
def test_bytes_use_the_largest_unit_that_fits(count: int, words: str) -> None:
    assert data_size(float(count)).replace("\u00a0", " ") == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.5, "0.50 s"), (59, "59 s"), (60, "1.0 min"), (7200, "2.0 h")]
)
def test_times_use_the_largest_unit_that_fits(seconds: float, words: str) -> None:
    assert duration(float(seconds)).replace("\u00a0", " ") == words


def test_missing_sizes_and_times_are_a_dash() -> None:
    assert data_size(None) == duration(None) == NO_FIGURE


def test_non_finite_numbers_are_a_dash() -> None:
    assert digits(None) == digits(float("inf")) == digits(float("nan")) == NO_FIGURE


def test_rounds_with_a_gap_are_listed() -> None:
    assert rounds_heard((1, 2, 4)) == "1, 2, 4"


def test_the_reference_label_names_guesses_and_controls() -> None:
    with_control = row({CONTROL: 0.1})
    assert beside([row({"told": 0.1})]) == beside([row({})]) == "informed guess"
    assert beside([with_control, row({})]) == "control"
    assert beside([with_control, row({"the base rate": 0.1})]) == "informed guess or control"


def row(references: dict[str, float]) -> Row:
    value = Estimate(0.5, None, None)
    key = ("none", (), "ours", "identity", (0,), "top1", "higher")
    return Row(*key, value, {}, references, None, None, 1, 1)
