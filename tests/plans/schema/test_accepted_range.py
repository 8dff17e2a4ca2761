"""The range of a setting is what its class accepts."""

import pytest

from overheard.plans.schema.accepted_range import accepted_range


@pytest.mark.parametrize(
    ("accepts", "expected"),
    [
        (lambda number: number >= 1, {"minimum": 1}),
        (lambda number: 0 <= number <= 1000, {"minimum": 0, "maximum": 1000}),
        (lambda number: number <= 20_000, {"maximum": 20_000}),
        (lambda number: True, {}),
    ],
)
def test_whole_numbers_have_exact_bounds(accepts, expected):
    assert accepted_range(accepts, 5, is_whole=True) == expected


def test_a_divisor_has_no_upper_bound_as_numbers_within_it_are_refused():
    accepts = lambda number: number >= 1 and 28 % number == 0  # noqa: E731 - one of a kind
    assert accepted_range(accepts, 1, is_whole=True) == {"minimum": 1}


@pytest.mark.parametrize(
    ("accepts", "expected"),
    [
        (lambda number: number > 0, {"exclusiveMinimum": 0}),
        (lambda number: 0 <= number < 1, {"minimum": 0, "exclusiveMaximum": 1}),
        (lambda number: 0 < number <= 1, {"exclusiveMinimum": 0, "maximum": 1}),
        (lambda number: True, {}),
    ],
)
def test_fractions_have_open_and_closed_bounds(accepts, expected):
    assert accepted_range(accepts, 0.25, is_whole=False) == expected


def test_a_bound_that_is_not_a_usual_one_is_left_out():
    assert accepted_range(lambda number: number >= 0.123, 0.5, is_whole=False) == {}
