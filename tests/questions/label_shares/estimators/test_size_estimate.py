"""Searching for a size by the length of updates, where the law of lengths is known."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.questions.label_shares.estimators.size_estimate import (
    LARGEST_SIZE,
    bisection,
    doubling,
)


class Lengths:
    """Virtual clients whose update is exactly size^power long; remembers who was asked for."""

    def __init__(self, power: float = 1.0) -> None:
        self.power = power
        self.asked: list[int] = []

    def __call__(self, size: int) -> float:
        self.asked.append(size)
        return float(size) ** self.power


class TestDoubling:
    def test_doubles_until_the_lengths_agree(self):
        lengths = Lengths()
        estimate = doubling(lengths, goal=780.0, guess=100, tolerance=0.05)
        # 800 is within 5 % of 780.
        assert (estimate.examples, estimate.converged) == (800, True)
        assert lengths.asked == [100, 200, 400, 800]

    def test_halves_where_the_guess_was_too_large(self):
        lengths = Lengths()
        estimate = doubling(lengths, goal=25.0, guess=100, tolerance=0.05)
        assert (estimate.examples, estimate.converged) == (25, True)
        assert lengths.asked == [100, 50, 25]

    def test_swinging_between_two_sizes_ends_and_is_told(self):
        # 300 lies between 200 and 400: as published it would go to and fro for ever.
        lengths = Lengths()
        estimate = doubling(lengths, goal=290.0, guess=100, tolerance=0.05)
        assert lengths.asked == [100, 200, 400]
        assert (estimate.examples, estimate.converged) == (200, False)
        assert estimate.low is None

    def test_an_update_longer_than_any_ends_at_the_largest_size(self):
        lengths = Lengths(power=0.0)
        estimate = doubling(lengths, goal=2.0, guess=100, tolerance=0.05)
        assert not estimate.converged
        assert max(lengths.asked) <= LARGEST_SIZE

    def test_an_update_of_length_zero_ends_at_one_example(self):
        estimate = doubling(Lengths(), goal=0.0, guess=100, tolerance=0.05)
        assert (estimate.examples, estimate.converged) == (1, False)

    @settings(deadline=None)
    @given(st.floats(0.01, 1e6), st.integers(1, LARGEST_SIZE), st.floats(-1, 2))
    def test_tries_no_size_twice_whatever_the_law(self, goal, guess, power):
        lengths = Lengths(power)
        doubling(lengths, goal, guess, tolerance=0.01)
        assert len(set(lengths.asked)) == len(lengths.asked) <= 2 * math.log2(LARGEST_SIZE)


def noisy(spread: float):
    """Five clients a size: length = size, times a noise of this spread on a log scale."""

    def norms_of(size: int) -> torch.Tensor:
        noise = torch.randn(5, generator=Seed(size).generator())
        return size * (spread * noise).exp()

    return norms_of


class TestBisection:
    @pytest.mark.parametrize("size", [60, 333, 4000])
    def test_finds_any_size_where_lengths_have_no_noise(self, size):
        estimate = bisection(noisy(0.0), float(size), 50, 5000)
        # Between two sizes that were tried, log length runs straight in log size.
        assert estimate.examples == pytest.approx(size, rel=0.01)
        assert estimate.converged

    def test_an_interval_holds_the_size_nine_times_in_ten(self):
        held = []
        for number in range(100):
            noise = 0.1 * torch.randn((), generator=Seed(10**6 + number).generator())
            goal = float(500 * noise.exp())
            estimate = bisection(noisy(0.1), goal, 50, 5000)
            assert estimate.low is not None
            assert estimate.high is not None
            held.append(estimate.low <= 500 <= estimate.high)
        # Binomial with 100 tries of 0.9: below 80 once in a thousand.
        assert 80 <= sum(held) <= 99

    def test_more_noise_is_a_wider_interval(self):
        calm, loud = (bisection(noisy(spread), 500.0, 50, 5000) for spread in (0.05, 0.5))
        assert loud.high / loud.low > 2 * calm.high / calm.low

    def test_lengths_that_do_not_grow_with_size_tell_nothing(self):
        def flat(size: int) -> torch.Tensor:
            return (0.1 * torch.randn(5, generator=Seed(size).generator())).exp()

        estimate = bisection(flat, 1.0, 50, 5000)
        assert estimate.low == pytest.approx(50)
        assert estimate.high == pytest.approx(5000)

    def test_a_length_beyond_the_range_is_told(self):
        estimate = bisection(noisy(0.01), 1e6, 50, 5000)
        assert estimate.examples == pytest.approx(5000)
        assert not estimate.converged

    def test_one_size_is_a_range_too(self):
        assert bisection(noisy(0.1), 70.0, 70, 70).examples == pytest.approx(70)
