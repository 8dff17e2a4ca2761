"""Figures of whole runs are drawn over people, and over runs."""

import numpy as np
import pytest

from overheard.core.seeds import Seed
from overheard.statistics.estimate import estimate
from overheard.statistics.resample import Resampled, resampled

SEED = Seed(4)


def mean_of(values: list[float], unknown: int = 0) -> Resampled:
    held = np.array(values)
    return Resampled(
        len(values) - unknown, unknown, lambda often: (often @ held) / often.sum(1)
    )


def test_a_mean_over_people_has_the_interval_that_a_mean_of_values_has() -> None:
    values = np.random.default_rng(0).normal(size=40)
    ours = resampled([mean_of(values.tolist())], SEED)
    theirs = estimate(values, np.zeros(40, dtype=np.int64), SEED)
    assert ours.mean == pytest.approx(theirs.mean)
    assert ours.low == pytest.approx(theirs.low, abs=0.03)
    assert ours.high == pytest.approx(theirs.high, abs=0.03)


def test_runs_weigh_alike_and_are_drawn_whole() -> None:
    # Runs of 0 and of 1: in a quarter of the draws both are the same, so the ends are 0 and 1.
    got = resampled([mean_of([0.0] * 9), mean_of([1.0] * 3)], SEED)
    assert (got.mean, got.low, got.high) == (0.5, 0.0, 1.0)


def test_known_and_unknown_people_keep_their_numbers() -> None:
    # Three known at 0, one unknown at 1: always a quarter, however often it is drawn.
    got = resampled([mean_of([0.0, 0.0, 0.0, 1.0], unknown=1)], SEED)
    assert (got.mean, got.low, got.high) == pytest.approx((0.25, 0.25, 0.25))


def test_one_person_alone_has_no_interval() -> None:
    got = resampled([mean_of([0.3])], SEED)
    assert (got.mean, got.low, got.high) == (0.3, None, None)


def test_a_mean_that_is_known_more_exactly_is_told_so() -> None:
    assert resampled([mean_of([0.0, 1.0])], SEED, value=0.51).mean == 0.51


def test_draws_that_tell_nothing_are_left_out() -> None:
    # Of two people only the first has a figure: a draw of the second alone tells nothing.
    def figure(often: np.ndarray) -> np.ndarray:
        return np.where(often[:, 0] > 0, 0.7, np.nan)

    got = resampled([Resampled(2, 0, figure)], SEED)
    assert (got.low, got.high) == (0.7, 0.7)
    nothing = Resampled(2, 0, lambda often: np.full(len(often), np.nan))
    assert resampled([nothing], SEED, value=0.5).low is None
