"""AUC and power depend only on ranks, and their intervals hold for few runs."""

from itertools import combinations
from math import exp, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.questions.shift.statistics.detection import estimate_auc, estimate_power
from overheard.questions.shift.statistics.pairs import PairedEvidence

SEED = Seed(5)

VALUES = st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=2, max_size=9)


def evidence(shifted: list[float], control: list[float]) -> PairedEvidence:
    return PairedEvidence(
        np.array(shifted, dtype=float),
        np.array(control, dtype=float),
        np.arange(len(shifted)),
        np.arange(len(control)) % len(shifted),
    )


def test_auc_counts_pairs_and_half_of_ties() -> None:
    # 3 beats 1 and 2 and ties 3: 2.5; 1 ties 1: 0.5; 5 beats all: 3. Together 6 of 9.
    assert estimate_auc(evidence([3, 1, 5], [1, 2, 3]), SEED).mean == pytest.approx(6 / 9)


def test_each_run_may_have_several_controls() -> None:
    # 3 beats 1, 2, 2 and 0 of the six and ties 3; 4 beats all but 5: 4.5 + 5 of 12.
    got = estimate_auc(evidence([3, 4], [1, 2, 2, 3, 0, 5]), SEED)
    assert got.mean == pytest.approx(9.5 / 12)
    # Two runs with ten controls each have 20 controls: rank ceil(21 * .95) = 20, the largest.
    power = estimate_power(evidence([19, 20], list(map(float, range(20)))), 5, SEED)
    assert power.mean == 0.5


def test_exchangeable_peaks_give_a_half_on_average() -> None:
    # Each choice of three of the six numbers, with ties, is equally likely to be the shifts.
    numbers = [1.0, 2.0, 2.0, 3.0, 5.0, 8.0]
    values = []
    for chosen in combinations(range(6), 3):
        rest = [numbers[place] for place in range(6) if place not in chosen]
        values.append(
            estimate_auc(evidence([numbers[place] for place in chosen], rest), SEED).mean
        )
    assert len(values) == 20
    assert sum(values) / 20 == pytest.approx(0.5)


@given(VALUES)
def test_auc_is_the_same_for_any_increasing_scale(draws: list[tuple[int, int]]) -> None:
    shifted, control = map(list, zip(*draws, strict=True))
    plain = estimate_auc(evidence(shifted, control), SEED)
    bent = estimate_auc(
        evidence([exp(value) for value in shifted], [exp(value) for value in control]), SEED
    )
    assert bent == plain


@given(VALUES)
def test_swapping_shifts_and_controls_mirrors_the_auc_at_a_half(
    draws: list[tuple[int, int]],
) -> None:
    shifted, control = map(list, zip(*draws, strict=True))
    one, other = (
        estimate_auc(evidence(shifted, control), SEED),
        estimate_auc(evidence(control, shifted), SEED),
    )
    assert one.mean + other.mean == pytest.approx(1)
    assert 0 <= one.low <= one.mean + 1e-9
    assert one.mean - 1e-9 <= one.high <= 1


def test_two_correct_runs_are_inconclusive_and_twenty_are_conclusive() -> None:
    # Two of two are ranked correctly by chance once in six times.
    few = estimate_auc(evidence([5, 6], [1, 2]), SEED)
    assert (few.mean, few.high) == (1.0, pytest.approx(1.0))
    assert few.low < 0.5
    many = estimate_auc(evidence(list(range(20, 40)), list(range(20))), SEED)
    assert many.low > 0.8


def test_the_lower_end_follows_the_variance_of_hanley_and_mcneil() -> None:
    # All of 20 correct: 1 - t = z sqrt(t (1 - t) (1 + 19 ((1 - t) / (2 - t) + t / (1 + t)))
    # / 20^2); the bootstrap has zero width here.
    low = estimate_auc(evidence(list(range(20, 40)), list(range(20))), SEED).low
    first, second = low / (2 - low), 2 * low**2 / (1 + low)
    variance = (low * (1 - low) + 19 * (first - low**2) + 19 * (second - low**2)) / 400
    assert 1 - low == pytest.approx(1.959964 * sqrt(variance), abs=1e-6)


def test_one_pair_has_no_interval() -> None:
    estimate = estimate_auc(evidence([1], [0]), SEED)
    assert (estimate.mean, estimate.low, estimate.high) == (1.0, None, None)


def test_correlated_targets_give_a_wider_interval_than_independent_runs() -> None:
    # 12 targets in 4 runs; half of the runs have a signal, the others do not.
    shifted, control = [3.0] * 6 + [0.0] * 6, [1.0] * 12
    single = estimate_auc(evidence(shifted, control), SEED)
    runs = np.repeat(np.arange(4), 3)
    clustered = estimate_auc(
        PairedEvidence(np.array(shifted), np.array(control), runs, runs), SEED
    )
    assert single.mean == clustered.mean == 0.5
    assert clustered.low < single.low


def test_the_interval_of_auc_has_about_its_stated_coverage() -> None:
    # Normal peaks, shifted by 1: auc = P(N(1, 2) > 0) = 0.7602. 150 audits of 15 pairs; 95 %
    # is 142, with a standard deviation of 3; as the wider of two, it may cover more.
    random = SEED.numpy()
    covered = 0
    for number in range(150):
        shifted, control = random.normal(size=(2, 15))
        estimate = estimate_auc(
            evidence((shifted + 1).tolist(), control.tolist()), Seed(number)
        )
        assert estimate.high is not None
        covered += estimate.low <= 0.7602 <= estimate.high
    assert 0.91 <= covered / 150 <= 1


def test_the_threshold_is_the_control_of_the_stated_rank() -> None:
    # 39 controls 1 .. 39: rank ceil(40 * 0.95) = 38. Of four shifts, 39 and 50
    # are above 38; 38 itself and 0 are not.
    controls = [float(number) for number in range(1, 40)]
    shifted = [50.0, 39.0, 38.0, 0.0] + [0.0] * 35
    estimate = estimate_power(evidence(shifted, controls), 5, SEED)
    assert estimate.mean == pytest.approx(2 / 39)


@pytest.mark.parametrize(("percent", "least"), [(5, 19), (1, 99)])
def test_with_too_few_controls_there_is_no_power(percent: int, least: int) -> None:
    few, enough = (
        evidence([float(count)] * count, list(map(float, range(count))))
        for count in (least - 1, least)
    )
    assert estimate_power(few, percent, SEED) is None
    estimate = estimate_power(enough, percent, SEED)
    assert estimate.mean == 1.0


@pytest.mark.slow
@settings(max_examples=8)
@given(st.lists(st.integers(0, 30), min_size=20, max_size=45))
def test_a_further_control_exceeds_the_threshold_at_most_at_the_stated_rate(
    values: list[int],
) -> None:
    # Each of n + 1 numbers is left out once: at most 5 % of them may exceed the threshold of
    # the others.
    above = 0
    for place, value in enumerate(values):
        others = [float(other) for other in values[:place] + values[place + 1 :]]
        estimate = estimate_power(evidence([float(value)] * len(others), others), 5, SEED)
        above += estimate.mean == 1.0
    assert above <= 0.05 * len(values)


def test_the_interval_of_the_power_has_a_width_if_all_shifts_are_detected() -> None:
    estimate = estimate_power(evidence([9.0] * 20, list(map(float, range(-20, 0)))), 5, SEED)
    assert (estimate.mean, estimate.high) == (1.0, 1.0)
    assert estimate.low == pytest.approx(0.025 ** (1 / 20))  # 20 of 20
