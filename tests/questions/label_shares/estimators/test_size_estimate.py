"""Size estimates with a known relation of length and size."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.questions.label_shares.attacks.whispers import (
    LARGEST_SIZE,
    estimate_by_bisection,
    estimate_by_doubling,
)


class Lengths:
    """Lengths of exactly size^power, with a record of the requested sizes."""

    def __init__(self, power: float = 1.0) -> None:
        self.power = power
        self.asked: list[int] = []

    def __call__(self, size: int) -> float:
        self.asked.append(size)
        return float(size) ** self.power


class TestDoubling:
    def test_doubles_until_the_lengths_agree(self):
        lengths = Lengths()
        estimate = estimate_by_doubling(lengths, goal=780.0, guess=100, tolerance=0.05)
        # 800 is within 5 % of 780.
        assert (estimate.examples, estimate.converged) == (800, True)
        assert lengths.asked == [100, 200, 400, 800]

    def test_halves_if_the_first_guess_is_too_large(self):
        lengths = Lengths()
        estimate = estimate_by_doubling(lengths, goal=25.0, guess=100, tolerance=0.05)
        assert (estimate.examples, estimate.converged) == (25, True)
        assert lengths.asked == [100, 50, 25]

    def test_stops_when_alternating_between_two_sizes(self):
        # 300 is between 200 and 400: the published algorithm alternates forever.
        lengths = Lengths()
        estimate = estimate_by_doubling(lengths, goal=290.0, guess=100, tolerance=0.05)
        assert lengths.asked == [100, 200, 400]
        assert (estimate.examples, estimate.converged) == (200, False)
        assert estimate.low is None

    def test_a_longer_update_than_any_gives_the_largest_size(self):
        lengths = Lengths(power=0.0)
        estimate = estimate_by_doubling(lengths, goal=2.0, guess=100, tolerance=0.05)
        assert not estimate.converged
        assert max(lengths.asked) <= LARGEST_SIZE

    def test_an_update_of_length_zero_gives_one_example(self):
        estimate = estimate_by_doubling(Lengths(), goal=0.0, guess=100, tolerance=0.05)
        assert (estimate.examples, estimate.converged) == (1, False)

    @given(st.floats(0.01, 1e6), st.integers(1, LARGEST_SIZE), st.floats(-1, 2))
    def test_tries_no_size_twice(self, goal, guess, power):
        lengths = Lengths(power)
        estimate_by_doubling(lengths, goal, guess, tolerance=0.01)
        assert len(set(lengths.asked)) == len(lengths.asked) <= 2 * math.log2(LARGEST_SIZE)


def noisy(spread: float):
    """Return lengths of five clients per size: size times log-normal noise."""

    def norms_of(size: int) -> torch.Tensor:
        noise = torch.randn(5, generator=Seed(size).generator())
        return size * (spread * noise).exp()

    return norms_of


class TestBisection:
    @pytest.mark.parametrize("size", [60, 333, 4000])
    def test_finds_any_size_without_noise(self, size):
        estimate = estimate_by_bisection(noisy(0.0), float(size), 50, 5000)
        # Between two tried sizes, log length is linear in log size.
        assert estimate.examples == pytest.approx(size, rel=0.01)
        assert estimate.converged

    def test_intervals_contain_the_size_nine_times_in_ten(self):
        held = []
        for number in range(100):
            noise = 0.1 * torch.randn((), generator=Seed(10**6 + number).generator())
            goal = float(500 * noise.exp())
            estimate = estimate_by_bisection(noisy(0.1), goal, 50, 5000)
            assert estimate.high is not None
            held.append(estimate.low <= 500 <= estimate.high)
        # Binomial with 100 trials of 0.9: below 80 with probability 0.001.
        assert 80 <= sum(held) <= 99

    def test_constant_lengths_give_the_whole_range(self):
        def flat(size: int) -> torch.Tensor:
            return (0.1 * torch.randn(5, generator=Seed(size).generator())).exp()

        estimate = estimate_by_bisection(flat, 1.0, 50, 5000)
        assert estimate.low == pytest.approx(50)
        assert estimate.high == pytest.approx(5000)

    def test_a_length_outside_the_range_does_not_converge(self):
        estimate = estimate_by_bisection(noisy(0.01), 1e6, 50, 5000)
        assert estimate.examples == pytest.approx(5000)
        assert not estimate.converged

    def test_the_range_may_be_one_size(self):
        assert estimate_by_bisection(noisy(0.1), 70.0, 70, 70).examples == pytest.approx(70)
