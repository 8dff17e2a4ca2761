from pathlib import Path
from statistics import fmean

import pytest

from overheard.statistics.exact_intervals import estimate_proportion
from overheard_studies.flip.attribute import (
    NO_BETTER,
    attribute,
    estimate_success_rate,
    make_pooled_values,
    make_row_values,
    read_attribute_rows,
)
from overheard_studies.flip.attribute_tests import (
    AFFINITY,
    OTHER_START,
    SAMPLES,
    TESTS,
    QuadrupleOutcome,
)
from overheard_studies.flip.setting import GUESS, NEAR
from overheard_studies.runs import StudyRuns

SAMPLES_AS_TRIALS = f"{SAMPLES}_each_a_trial"
FLIP = AFFINITY.format("flip")


def test_federations_have_equal_weight_for_any_number_of_decisions() -> None:
    rate = estimate_success_rate(
        SAMPLES,
        [
            QuadrupleOutcome(SAMPLES, "a-b", 0, 3, 4),
            QuadrupleOutcome(SAMPLES, "a-c", 0, 25, 100),
        ],
    )
    assert rate is not None
    assert rate.mean == pytest.approx(0.5)
    # Two federations at 0.75 and 0.25: a standard error of 0.25, times 12.71 at 1 degree of
    # freedom.
    assert rate.low == pytest.approx(0.5 - 12.706 * 0.25, abs=1e-3)


def test_two_attacks_on_one_federation_count_as_one_trial() -> None:
    answers = [
        QuadrupleOutcome(FLIP, task, seed, 5, 5)
        for task in ("a-b", "a-c")
        for seed in (0, 1)
        for _ in range(2)
    ]
    # Four federations, all right: 0.025 to the power of 1/4.
    rate = estimate_success_rate(FLIP, answers)
    assert rate is not None
    assert rate.low == pytest.approx(0.025**0.25)
    assert rate.high == 1.0


def test_two_federations_without_errors_have_a_wide_interval() -> None:
    rate = estimate_success_rate(
        SAMPLES, [QuadrupleOutcome(SAMPLES, task, 0, 90, 90) for task in ("a-b", "a-c")]
    )
    assert rate == estimate_proportion(2.0, 2)


def test_clients_of_a_federation_share_its_trial() -> None:
    rate = estimate_success_rate(
        FLIP, [QuadrupleOutcome(FLIP, "a-b", 0, 4, 5), QuadrupleOutcome(FLIP, "a-c", 0, 1, 5)]
    )
    assert rate == estimate_proportion(1.0, 2)


def test_a_row_has_the_published_value_for_the_papers_attack() -> None:
    row = read_attribute_rows()[0]
    answers = [
        QuadrupleOutcome(test, task.key, seed, 6, 10)
        for test in TESTS
        for task in row.quadruple.test_tasks
        for seed in (0, 1)
        if test != OTHER_START
    ]
    values = {one.name: one for one in make_row_values(row, "here", answers)}
    assert set(values) == {f"row1_{test}" for test in (*TESTS, SAMPLES_AS_TRIALS)}
    assert values["row1_samples"].value == pytest.approx(0.6)
    assert {name for name, one in values.items() if one.published} == {
        "row1_samples",
        "row1_samples_other_start",
    }
    # With one seed there is no other start.
    other = values["row1_samples_other_start"]
    assert other.value is None
    assert "two seeds" in other.setting
    # 24 of 40 samples.
    each = values[f"row1_{SAMPLES_AS_TRIALS}"]
    assert (each.low, each.high) == (
        estimate_proportion(24.0, 40).low,
        estimate_proportion(24.0, 40).high,
    )


def test_pooled_rows_have_the_mean_of_the_published_values() -> None:
    rows = read_attribute_rows()[:2]
    answers = [
        QuadrupleOutcome(SAMPLES, "a-b", 0, 1, 2),
        QuadrupleOutcome(SAMPLES, "a-c", 0, 1, 2),
    ]
    samples = next(
        one for one in make_pooled_values(rows, answers) if one.name == "all_samples"
    )
    # The mean of 0.4688 and 0.4838.
    assert samples.published == pytest.approx(0.4763)


def test_a_row_without_data_has_only_the_published_value() -> None:
    row = read_attribute_rows()[-1]
    (value,) = [
        one
        for one in attribute().read_values(StudyRuns({}, {}, Path()))
        if one.name == f"row{row.number}_samples"
    ]
    assert value.value is None
    assert value.published == pytest.approx(0.6337)
    assert "not run" in value.setting


def test_the_published_accuracies_would_be_about_half() -> None:
    rows = {row.number: row.attack_accuracy for row in read_attribute_rows()}
    assert abs(fmean((rows[1], rows[3], rows[6])) - GUESS) < NEAR / 2
    assert max(rows[1], rows[3]) < NO_BETTER < rows[6]
    assert sum(one <= GUESS for one in rows.values()) == 7
