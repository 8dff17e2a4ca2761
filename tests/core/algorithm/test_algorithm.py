"""The weights of a mean, worked by hand."""

from dataclasses import replace

import pytest

from overheard.core.algorithm.algorithm import mean_factors
from tests.algorithms.by_hand import received


def test_hidden_or_zero_sizes_count_alike() -> None:
    assert mean_factors(received(1.0, 1.0, sizes=(None, 3)), "examples") == (0.5, 0.5)
    assert mean_factors(received(1.0, 1.0, sizes=(0, 0)), "examples") == (0.5, 0.5)
    assert mean_factors(received(1.0, 1.0, sizes=(0, 2)), "examples") == (0.0, 1.0)


def test_copies_multiply_the_weight() -> None:
    one, other = received(1.0, 1.0, sizes=(1, 3))
    assert mean_factors((replace(one, copies=3), other), "examples") == (0.5, 0.5)
    assert mean_factors((replace(one, copies=3), other), "equal") == (0.75, 0.25)


def test_the_mean_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no updates"):
        mean_factors((), "equal")
