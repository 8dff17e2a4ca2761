"""Coverage of intervals in simulations with known shares."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from overheard.core.claims import Interval
from overheard.core.seeds import Seed
from overheard.questions.label_shares.estimators.local_intervals import (
    FEWEST_NEIGHBOURS,
    CalibrationCases,
    residual_interval,
)

CLASSES = 4


def drawn_shares(count: int, seed: int) -> Tensor:
    """Draw shares from one class only to nearly balanced."""
    random = Seed(seed).numpy()
    return torch.stack(
        [
            torch.from_numpy(random.dirichlet([10 ** random.uniform(-1, 1)] * CLASSES))
            for _ in range(count)
        ]
    )


def noise(count: int, seed: int) -> Tensor:
    """Draw noise with deviation 1 and sum 0 over the classes."""
    drawn = torch.randn(count, CLASSES, generator=Seed(seed).generator()).double()
    return (drawn - drawn.mean(1, keepdim=True)) / (1 - 1 / CLASSES) ** 0.5


def holds(interval: Interval, shares: Tensor) -> list[bool]:
    ends = zip(interval.low, shares.tolist(), interval.high, strict=True)
    return [low <= share <= high for low, share, high in ends]


def width(interval: Interval) -> float:
    """Return the mean width over the classes."""
    ends = zip(interval.low, interval.high, strict=True)
    return sum(high - low for low, high in ends) / len(interval.low)


# Errors of one client go together: at worst 400 independent tries of 0.9, whose share has a
# deviation of 0.015; and of 600 known cases some 60 to 120 give a quantile.
@pytest.mark.parametrize("spread", [0.01, 0.05])
def test_covers_nine_true_shares_in_ten(spread: float):
    known, fresh = drawn_shares(600, 1), drawn_shares(400, 2)
    cases = CalibrationCases(known + spread * noise(600, 3), known)
    held = []
    for one, true in zip(fresh + spread * noise(400, 4), fresh, strict=True):
        held += holds(cases.bounds(one), true)
    assert 0.85 < sum(held) / len(held) < 0.95


class TestLikeCases:
    """Errors of balanced clients are ten times smaller than those of imbalanced ones."""

    DEVIATIONS = (0.003, 0.03)

    def kind(self, uneven: bool, count: int, seed: int) -> tuple[Tensor, Tensor]:
        """Return estimates and true shares."""
        alpha = 0.5 if uneven else 10.0
        random = Seed(seed).numpy()
        shares = torch.from_numpy(random.dirichlet([alpha] * CLASSES, count))
        return shares + self.DEVIATIONS[uneven] * noise(count, seed), shares

    def test_widths_follow_the_errors_of_similar_cases(self):
        known = [self.kind(uneven, 500, 20 + uneven) for uneven in (False, True)]
        cases = CalibrationCases(*(torch.cat(parts) for parts in zip(*known, strict=True)))
        widths, covered = [], []
        for uneven in (False, True):
            held = []
            for one, true in zip(*self.kind(uneven, 200, 30 + uneven), strict=True):
                interval = cases.bounds(one)
                held += holds(interval, true)
                # Those that end at 0 are narrower for another reason.
                if min(interval.low) > 0:
                    widths.append((uneven, width(interval)))
            covered.append(sum(held) / len(held))
        even, odd = (
            [width for kind, width in widths if kind == uneven] for uneven in (False, True)
        )
        # 90 % of a normal lie within 1.645 deviations either way. Some neighbours are of the
        # other kind; had all cases been judged alike, both would be about 3.29 * 0.02 wide.
        ratios = [
            sum(own) / len(own) / (3.29 * deviation)
            for own, deviation in zip((even, odd), self.DEVIATIONS, strict=True)
        ]
        assert all(0.6 < ratio < 1.7 for ratio in ratios)
        assert all(0.83 < part < 0.97 for part in covered)


def test_corrects_a_constant_bias():
    known = drawn_shares(200, 7)
    lean = torch.tensor([0.1, -0.1, 0.0, 0.0]).double()
    cases = CalibrationCases((known + lean).clamp(0, 1), known)
    one = torch.tensor([0.8, 0.1, 0.05, 0.05]).double()
    interval = cases.bounds(one)
    # Cases with an estimate about 0.8 are those of class 0 whose share was 0.1 less, for the
    # greater part, beside some of the others.
    assert interval.low[0] == pytest.approx(0.7, abs=0.01)


class TestEnds:
    def test_leave_out_a_twentieth_on_each_side(self):
        # 0.05 * 61 = 3.05, down to the 3rd; 0.95 * 61 = 57.95, up to the 58th.
        rows = torch.stack((torch.arange(1.0, 61.0), torch.arange(11.0, 71.0)))
        low, high = residual_interval(rows)
        assert (low.tolist(), high.tolist()) == ([3.0, 13.0], [58.0, 68.0])

    @pytest.mark.parametrize("count", [20, 60, 333])
    def test_contain_a_new_case_with_probability_nine_tenths(self, count):
        # Each of count + 1 numbers is the new one once.
        held = 0
        for new in range(count + 1):
            known = torch.tensor([float(one) for one in range(count + 1) if one != new])
            low, high = map(float, residual_interval(known))
            held += low <= new <= high
        assert 0.9 <= held / (count + 1) <= 0.9 + 2 / count


class TestNull:
    # Estimates near 0 are of absent labels, all others of labels that are there.
    KNOWN = torch.tensor([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5]] * 100, dtype=torch.float64)
    CASES = CalibrationCases(KNOWN + 0.01 * torch.tensor([[1.0, -0.5, -0.5]]).double(), KNOWN)

    def test_is_nearly_but_never_fully_certain(self):
        # 600 numbers, so the 60 nearest count, and half a one either way: 60.5 / 61, 0.5 / 61.
        assert FEWEST_NEIGHBOURS == 60
        chances = self.CASES.null_probability(torch.tensor([0.0, 0.45, 0.55]).double())
        assert chances.tolist() == pytest.approx([60.5 / 61, 0.5 / 61, 0.5 / 61])

    def test_is_the_fraction_of_similar_cases_without_the_label(self):
        shares = torch.tensor([[0.0, 1.0], [0.1, 0.9]], dtype=torch.float64).repeat(15, 1)
        estimates = torch.tensor([[0.05, 0.95]], dtype=torch.float64).repeat(30, 1)
        # So few numbers, 60, all count as alike, and 15 of them are 0.
        chances = CalibrationCases(estimates, shares).null_probability(estimates[0])
        assert chances.tolist() == pytest.approx([15.5 / 61, 15.5 / 61])


@pytest.mark.parametrize("cases", [2, 300])
def test_equal_estimates_give_finite_wide_intervals(cases):
    shares = drawn_shares(cases, 9)
    flat = torch.full((cases, CLASSES), 1 / CLASSES, dtype=torch.float64)
    known = CalibrationCases(flat, shares)
    interval = known.bounds(flat[0])
    assert width(interval) > 0.3
    assert bool(known.null_probability(flat[0]).isfinite().all())


def test_cases_without_errors_give_intervals_of_width_0():
    shares = drawn_shares(100, 10)
    one = shares[0]
    interval = CalibrationCases(shares, shares).bounds(one)
    assert interval.low == pytest.approx(one.tolist())
    assert interval.high == pytest.approx(one.tolist())


@given(st.integers(1, 120), st.integers(0, 10**6), st.floats(0, 2))
def test_bounds_and_probabilities_are_between_0_and_1(count, seed, spread):
    shares = drawn_shares(count, seed)
    cases = CalibrationCases(shares + spread * noise(count, seed), shares)
    (new,) = drawn_shares(1, seed + 1)
    interval = cases.bounds(new)
    ends = zip(interval.low, interval.high, strict=True)
    assert all(0 <= low <= high <= 1 for low, high in ends)
    chances = cases.null_probability(new)
    assert bool(((chances > 0) & (chances < 1)).all())
