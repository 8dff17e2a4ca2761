"""Statistics of runs are resampled over runs and users."""

import numpy as np
import pytest

from overheard.core.seeds import Seed
from overheard.statistics.bootstrap import ResampledRun, bootstrap_mean
from overheard.statistics.estimate import estimate_mean

SEED = Seed(4)


def mean_of(values: list[float], unknown: int = 0) -> ResampledRun:
    array = np.array(values)
    return ResampledRun(
        len(values) - unknown, unknown, lambda counts: (counts @ array) / counts.sum(1)
    )


def test_the_interval_over_users_equals_that_of_a_mean_of_values() -> None:
    values = np.random.default_rng(0).normal(size=40)
    by_users = bootstrap_mean([mean_of(values.tolist())], SEED)
    by_values = estimate_mean(values, np.zeros(40, dtype=np.int64), SEED)
    assert by_users.mean == pytest.approx(by_values.mean)
    assert by_users.low == pytest.approx(by_values.low, abs=0.03)
    assert by_users.high == pytest.approx(by_values.high, abs=0.03)


def test_runs_have_equal_weight_and_are_resampled() -> None:
    # Runs of 0 and of 1: in a quarter of the draws both are the same, so the ends are 0 and 1.
    result = bootstrap_mean([mean_of([0.0] * 9), mean_of([1.0] * 3)], SEED)
    assert (result.mean, result.low, result.high) == (0.5, 0.0, 1.0)


def test_known_and_unknown_users_are_resampled_separately() -> None:
    # Three known at 0, one unknown at 1: always a quarter, however counts it is drawn.
    result = bootstrap_mean([mean_of([0.0, 0.0, 0.0, 1.0], unknown=1)], SEED)
    assert (result.mean, result.low, result.high) == pytest.approx((0.25, 0.25, 0.25))


def test_a_single_user_has_no_interval() -> None:
    result = bootstrap_mean([mean_of([0.3])], SEED)
    assert (result.mean, result.low, result.high) == (0.3, None, None)


def test_a_given_mean_is_returned() -> None:
    assert bootstrap_mean([mean_of([0.0, 1.0])], SEED, value=0.51).mean == 0.51


def test_undefined_draws_are_left_out() -> None:
    # The statistic is undefined for draws without the first of two users.
    def statistic(counts: np.ndarray) -> np.ndarray:
        return np.where(counts[:, 0] > 0, 0.7, np.nan)

    result = bootstrap_mean([ResampledRun(2, 0, statistic)], SEED)
    assert (result.low, result.high) == (0.7, 0.7)
    undefined = ResampledRun(2, 0, lambda counts: np.full(len(counts), np.nan))
    assert bootstrap_mean([undefined], SEED, value=0.5).low is None
