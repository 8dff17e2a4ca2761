import pytest

from overheard.papers.flip.attribute_figures import (
    EACH_A_TRIAL,
    not_run,
    pooled_figures,
    right,
    row_figures,
)
from overheard.papers.flip.attribute_tests import (
    OTHER_START,
    PUSHED,
    SAMPLES,
    TESTS,
    QuadrupleAnswer,
)
from overheard.papers.flip.printed import attribute_rows
from overheard.statistics.exact_intervals import estimate_proportion

FLIP = PUSHED.format("flip")


def test_federations_have_equal_weight_for_any_number_of_decisions() -> None:
    rate = right(
        SAMPLES,
        [QuadrupleAnswer(SAMPLES, "a-b", 0, 3, 4), QuadrupleAnswer(SAMPLES, "a-c", 0, 25, 100)],
    )
    assert rate is not None
    assert rate.mean == pytest.approx(0.5)
    # Two federations drawn with replacement: both may be the first, or both the second.
    assert rate.low == pytest.approx(0.25)
    assert rate.high == pytest.approx(0.75)


def test_two_attacks_on_one_federation_count_as_one_trial() -> None:
    answers = [
        QuadrupleAnswer(FLIP, task, seed, 5, 5)
        for task in ("a-b", "a-c")
        for seed in (0, 1)
        for _ in range(2)
    ]
    # Four federations, all right: 0.025 to the power of 1/4.
    rate = right(FLIP, answers)
    assert rate is not None
    assert rate.low == pytest.approx(0.025**0.25)
    assert rate.high == 1.0


def test_two_federations_without_errors_have_a_wide_interval() -> None:
    rate = right(
        SAMPLES, [QuadrupleAnswer(SAMPLES, task, 0, 90, 90) for task in ("a-b", "a-c")]
    )
    assert rate == estimate_proportion(2.0, 2)


def test_clients_of_a_federation_share_its_trial() -> None:
    rate = right(
        FLIP, [QuadrupleAnswer(FLIP, "a-b", 0, 4, 5), QuadrupleAnswer(FLIP, "a-c", 0, 1, 5)]
    )
    assert rate == estimate_proportion(1.0, 2)


def test_a_row_has_the_published_value_for_the_papers_attack() -> None:
    row = attribute_rows()[0]
    answers = [
        QuadrupleAnswer(test, task.key, seed, 6, 10)
        for test in TESTS
        for task in row.quadruple.tested
        for seed in (0, 1)
        if test != OTHER_START
    ]
    values = {one.name: one for one in row_figures(row, "here", answers)}
    assert set(values) == {f"row1_{test}" for test in (*TESTS, EACH_A_TRIAL)}
    assert values["row1_samples"].ours == pytest.approx(0.6)
    assert {name for name, one in values.items() if one.published} == {
        "row1_samples",
        "row1_samples_other_start",
    }
    # With one seed there is no other start.
    other = values["row1_samples_other_start"]
    assert other.ours is None
    assert "two seeds" in other.setting
    # 24 of 40 samples.
    each = values[f"row1_{EACH_A_TRIAL}"]
    assert (each.low, each.high) == (
        estimate_proportion(24.0, 40).low,
        estimate_proportion(24.0, 40).high,
    )


def test_pooled_rows_have_the_mean_of_the_published_values() -> None:
    rows = attribute_rows()[:2]
    answers = [
        QuadrupleAnswer(SAMPLES, "a-b", 0, 1, 2),
        QuadrupleAnswer(SAMPLES, "a-c", 0, 1, 2),
    ]
    samples = next(
        one for one in pooled_figures(rows, "all", answers) if one.name == "all_samples"
    )
    # The mean of 0.4688 and 0.4838.
    assert samples.published == pytest.approx(0.4763)


def test_a_row_without_data_has_only_the_published_value() -> None:
    value = not_run(attribute_rows()[-1])
    assert value.ours is None
    assert value.published == pytest.approx(0.6337)
    assert "not run" in value.setting
