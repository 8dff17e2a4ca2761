"""Estimates of numbers: quantiles, and intervals by the virtual clients like the target."""

import numpy as np
import torch

from overheard.core.examples import without_classes
from overheard.core.seeds import Seed
from overheard.questions.target_distribution.estimators.calibrated_numbers import (
    NEIGHBOURS,
    calibrate_numbers,
)
from overheard.questions.target_distribution.estimators.tilted_clients import (
    FEWEST_EFFECTIVE,
    draw_tilted_clients,
)
from overheard.questions.target_distribution.estimators.tilted_quantiles import (
    tilted_quantiles,
)


def test_tilted_quantiles_have_the_mean_and_keep_frequent_values() -> None:
    # Half of all values are 40.
    sample = np.concatenate((np.full(100, 40.0), np.linspace(10, 70, 100)))
    means = np.array([38.0, 40.0, 42.0])
    low, median, high = tilted_quantiles(means, sample, (0.1, 0.5, 0.9)).T
    assert median.tolist() == [40.0, 40.0, 40.0]
    assert low[0] < low[1] < low[2]
    assert high[0] < high[1] < high[2]
    # Of two values, 0 and 1, weights with the mean 0.8 make the 0.1 quantile 0, and 0.3 is 1.
    pair = tilted_quantiles(np.array([0.8]), np.array([0.0, 1.0]), (0.1, 0.3))
    assert pair.tolist() == [[0.0, 1.0]]


def test_a_mean_beyond_the_sample_and_a_sample_of_one_value_are_read() -> None:
    sample = np.arange(10.0)
    assert tilted_quantiles(np.array([99.0]), sample, (0.5,)).item() == 9.0
    assert tilted_quantiles(np.array([99.0]), np.full(4, 3.0), (0.1, 0.9)).tolist() == [[3, 3]]


def test_intervals_have_the_errors_of_virtual_clients_like_the_target() -> None:
    # Estimates near 0 err by 1, those near 10 by 5.
    unseen = np.repeat([0.0, 10.0], NEIGHBOURS)[:, None]
    true = unseen + np.repeat([1.0, 5.0], NEIGHBOURS)[:, None]
    sample = np.linspace(-1, 11, 30)[:, None]
    for estimate, margin in ((0.2, 1.0), (9.5, 5.0)):
        found = calibrate_numbers(np.array([estimate]), unseen, true, sample)
        assert found.numbers.tolist() == [estimate]
        assert found.margins.tolist() == [margin]


def test_a_quantile_is_the_estimate_that_errs_less_on_virtual_clients() -> None:
    sample = np.linspace(0, 1, 101)[:, None]
    means = np.linspace(0.3, 0.7, 60)
    tilted = tilted_quantiles(means, sample[:, 0], (0.1, 0.5, 0.9))
    true = np.column_stack((means, tilted))
    # The regression is right about the first quantile alone.
    unseen = true + np.array([0.0, 0.0, 0.4, 0.4])
    found = calibrate_numbers(np.array([0.5, 0.05, 0.9, 1.3]), unseen, true, sample)
    assert found.numbers[0] == 0.5
    assert (
        found.numbers[2:].tolist()
        == tilted_quantiles(np.array([0.5]), sample[:, 0], (0.5, 0.9)).flatten().tolist()
    )
    assert found.margins.max() < 1e-9


def test_no_virtual_client_holds_few_examples_many_times() -> None:
    """Numbers with a long tail would give a client of a few examples by their odds alone."""
    draws = torch.Generator().manual_seed(0)
    numbers = (1.5 * torch.randn(200, 1, generator=draws)).exp()
    examples = without_classes(torch.randn(200, 5, generator=draws), numbers)
    rows = draw_tilted_clients(examples, torch.arange(200), [2000] * 20, Seed(0))
    for one in rows:
        shares = one.bincount(minlength=200).double() / len(one)
        # A draw of 2000 has itself a little fewer that count.
        assert 1 / shares.square().sum() > 0.9 * FEWEST_EFFECTIVE * 200
