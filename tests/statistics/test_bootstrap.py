"""Intervals of rates are over runs if there are five, else over users."""

import numpy as np
import pytest

from overheard.core.seeds import Seed
from overheard.statistics.bootstrap import ResampledRun, bootstrap_mean
from overheard.statistics.run_means import estimate_mean

SEED = Seed(4)


def mean_of(values: list[float], unknown: int = 0) -> ResampledRun:
    array = np.array(values)
    return ResampledRun(
        len(values) - unknown, unknown, lambda counts: (counts @ array) / counts.sum(1)
    )


def test_the_interval_over_users_equals_that_of_a_mean_of_values() -> None:
    values = np.random.default_rng(0).uniform(0.3, 0.7, size=40)
    by_users = bootstrap_mean([mean_of(values.tolist())], SEED)
    by_values = estimate_mean(values, np.zeros(40, dtype=np.int64))
    assert by_users.mean == pytest.approx(by_values.mean)
    assert by_users.low == pytest.approx(by_values.low, abs=0.01)
    assert by_users.high == pytest.approx(by_values.high, abs=0.01)
    assert by_users.basis == by_values.basis == "these runs"


def test_five_runs_have_students_interval_over_runs_of_equal_weight() -> None:
    # 0.3, 0.4, .. 0.7: mean 0.5, standard error sqrt(0.025 / 5), quantile 2.776. The exact
    # interval of as many trials is a little wider.
    runs = [mean_of([0.1 * number] * (number + 1)) for number in range(3, 8)]
    result = bootstrap_mean(runs, SEED)
    assert (result.mean, result.low, result.high) == pytest.approx(
        (0.5, 0.5 - 0.1963, 0.5 + 0.1963), abs=0.02
    )
    assert result.low <= 0.5 - 0.1963
    assert (result.basis, result.degrees) == ("runs", 4)


def test_known_and_unknown_users_are_resampled_separately() -> None:
    # Three known at 0, one unknown at 1: always a quarter, however counts it is drawn.
    result = bootstrap_mean([mean_of([0.0, 0.0, 0.0, 1.0], unknown=1)], SEED)
    assert (result.mean, result.low, result.high) == pytest.approx((0.25, 0.25, 0.25))
    # The sums of 0, 0.3, 0.6 and of 0.4, 0.8 have variances 0.18 and 0.08: as a mean of five,
    # 0.26 / 25, times 5 / 4. Student's quantile at 5 - 1 degrees of freedom is 2.776.
    result = bootstrap_mean([mean_of([0.0, 0.3, 0.6, 0.4, 0.8], unknown=2)], SEED)
    assert (result.mean, result.degrees) == pytest.approx((0.42, 4))
    assert result.low == pytest.approx(0.42 - 2.776 * 0.114, abs=0.015)


def test_a_single_user_has_no_interval() -> None:
    result = bootstrap_mean([mean_of([0.3])], SEED)
    assert (result.mean, result.low, result.high) == (0.3, None, None)


def test_undefined_draws_are_left_out() -> None:
    # The statistic is undefined for draws without the first of two users.
    def statistic(counts: np.ndarray) -> np.ndarray:
        return np.where(counts[:, 0] > 0, 0.7, np.nan)

    result = bootstrap_mean([ResampledRun(2, 0, statistic)], SEED)
    assert (result.low, result.high) == pytest.approx((0.7, 0.7))
    undefined = ResampledRun(2, 0, lambda counts: np.full(len(counts), np.nan))
    assert bootstrap_mean([undefined], SEED, value=0.5).low is None


@pytest.mark.slow
def test_the_interval_over_users_covers_the_rate_of_these_runs() -> None:
    # 3 runs of 12 users, each right with the probability of the run: 0.3, 0.5, 0.7. Of 300
    # audits 285 should cover the mean 0.5, with a standard deviation of 4.
    generator, covered = SEED.numpy(), 0
    for number in range(300):
        runs = [
            mean_of((generator.random(12) < chance).astype(float).tolist())
            for chance in (0.3, 0.5, 0.7)
        ]
        result = bootstrap_mean(runs, Seed(number))
        assert result.high is not None
        covered += result.low <= 0.5 <= result.high
    assert 273 <= covered <= 297
