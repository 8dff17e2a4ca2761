"""The interval of the strongest attack covers the strongest of the true gains."""

import numpy as np
import pytest

from overheard.core.seeds import Seed
from overheard.statistics.estimate import Estimate, student_estimate, student_quantile
from overheard.statistics.run_means import estimate_mean
from overheard.statistics.selection import are_below, estimate_strongest


def test_one_attack_keeps_its_interval() -> None:
    one = student_estimate(0.3, 0.1, 4.0, "runs")
    strongest = estimate_strongest([one])
    assert (strongest.mean, strongest.low, strongest.high) == pytest.approx(
        (0.3, one.low, one.high)
    )


def test_the_lower_end_is_divided_among_the_attacks() -> None:
    # Two attacks at 4 degrees of freedom: the lower ends are at 1.25 %. The upper end is that
    # of the attack with the wider interval, which is not the best on average.
    best = student_estimate(0.3, 0.1, 4.0, "runs")
    wide = student_estimate(0.2, 0.2, 4.0, "runs")
    strongest = estimate_strongest([best, wide])
    assert strongest.mean == 0.3
    assert strongest.low == pytest.approx(0.3 - 0.1 * student_quantile(0.0125, 4.0))
    assert strongest.high == pytest.approx(0.2 + 0.2 * 2.776, abs=1e-3)
    assert strongest.basis == "runs"


def test_an_attack_without_an_interval_leaves_the_upper_end_open() -> None:
    gains = [student_estimate(0.3, 0.1, 4.0, "these runs"), Estimate(0.1, None, None)]
    strongest = estimate_strongest(gains)
    assert strongest.low is not None
    assert strongest.high is None
    assert strongest.basis == "these runs"
    assert estimate_strongest([Estimate(0.1, None, None)]).low is None


def test_gains_are_below_a_margin_only_if_all_upper_ends_are() -> None:
    near, far = Estimate(0.0, -0.1, 0.04), Estimate(0.0, -0.1, 0.06)
    assert are_below([near, near], 0.05)
    assert not are_below([near, far], 0.05)
    assert not are_below([near, Estimate(0.0, None, None)], 0.05)
    assert not are_below([Estimate(0.0, -0.1, 0.05)], 0.05)


@pytest.mark.parametrize("runs", [2, 10])
def test_the_best_of_twelve_equal_attacks_is_covered(runs: int) -> None:
    # All true gains are 0. The naive interval of the best covers 0 in 82 % of audits or fewer.
    # 95 % of 600 are 570, with a standard deviation of 5.
    generator, covered, naive = Seed(2).numpy(), 0, 0
    run = np.repeat(np.arange(runs), 5)
    for _ in range(600):
        gains = [estimate_mean(generator.normal(size=runs * 5), run) for _ in range(12)]
        strongest, best = estimate_strongest(gains), max(gains, key=lambda one: one.mean)
        assert strongest.low is not None
        assert strongest.high is not None
        assert best.low is not None
        covered += strongest.low <= 0 <= strongest.high
        naive += best.low <= 0
    assert covered >= 555
    assert naive < 510
