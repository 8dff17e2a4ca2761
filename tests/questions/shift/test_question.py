"""Evidence of shifts is compared with natural controls in place of the run with the shift."""

import numpy as np
import pytest

from overheard.core.seeds import Seed
from overheard.questions.shift.question import flipped_fits
from overheard.statistics.permutation_test import re_drawn_runs
from tests.questions.null_p_values import assert_uniform, smallest_p_values


def test_a_fit_is_the_sum_of_ranks_of_the_chosen_runs() -> None:
    peaks = np.array([[[9.0, 1.0], [4.0, 6.0]]])
    choices = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    fits = flipped_fits(peaks, np.array([0, 1]), choices)
    # Ranks 4 and 1 in the first seed, 2 and 3 in the second.
    assert fits[:, 0].tolist() == [6.0, 3.0, 7.0, 4.0]


def test_all_targets_of_a_seed_are_exchanged_together() -> None:
    peaks = np.array([[[4.0, 1.0], [3.0, 2.0]]])
    fits = flipped_fits(peaks, np.array([0, 0]), np.array([[0], [1]]))
    assert fits[:, 0].tolist() == [7.0, 3.0]


def test_a_missing_control_or_claim_counts_nothing() -> None:
    peaks = np.array([[[2.0, 1.0, np.nan], [np.nan, np.nan, np.nan]]])
    fits = flipped_fits(peaks, np.array([0, 0]), np.array([[0], [1]]))
    assert fits[:, 0].tolist() == [2.0, 1.0]


def fits_of_seeds(number: int, strength: float, seeds: int, controls: int) -> np.ndarray:
    """Two targets a seed, whose evidence shares a part of each run."""
    random = np.random.default_rng(number)
    of_run = random.normal(size=(3, seeds, 1, 1 + controls))
    peaks = of_run + 0.5 * random.normal(size=(3, seeds, 2, 1 + controls))
    peaks[..., 0] += strength
    choices = re_drawn_runs([1 + controls] * seeds, Seed(number))
    return flipped_fits(
        peaks.reshape(3, 2 * seeds, 1 + controls), np.repeat(np.arange(seeds), 2), choices
    )


@pytest.mark.parametrize(("seeds", "controls"), [(8, 1), (3, 3)])
def test_controls_like_the_planned_run_have_uniform_p_values(seeds: int, controls: int) -> None:
    assert_uniform(
        smallest_p_values(lambda number: fits_of_seeds(number, 0.0, seeds, controls))
    )


@pytest.mark.parametrize(("seeds", "controls"), [(6, 1), (3, 3), (2, 6), (1, 39)])
def test_strong_shifts_are_found_with_the_fewest_runs(seeds: int, controls: int) -> None:
    found = smallest_p_values(lambda number: fits_of_seeds(number, 20.0, seeds, controls))
    assert (found <= 0.025).all()


@pytest.mark.parametrize(("seeds", "controls"), [(5, 1), (3, 2), (1, 38)])
def test_fewer_runs_can_find_nothing(seeds: int, controls: int) -> None:
    found = smallest_p_values(lambda number: fits_of_seeds(number, 20.0, seeds, controls))
    assert (found > 0.025).all()
