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
from overheard.statistics.exact import proportion

FLIP = PUSHED.format("flip")


def test_federations_weigh_alike_however_often_they_were_asked_about() -> None:
    told = right(
        SAMPLES,
        [QuadrupleAnswer(SAMPLES, "a-b", 0, 3, 4), QuadrupleAnswer(SAMPLES, "a-c", 0, 25, 100)],
    )
    assert told is not None
    assert told.mean == pytest.approx(0.5)
    # Of two federations drawn with replacement: both this one or both that.
    assert told.low == pytest.approx(0.25)
    assert told.high == pytest.approx(0.75)


def test_two_attacks_on_one_federation_are_one_trial() -> None:
    answers = [
        QuadrupleAnswer(FLIP, task, seed, 5, 5)
        for task in ("a-b", "a-c")
        for seed in (0, 1)
        for _ in range(2)
    ]
    # Four federations, all right: 0.025 to the power of 1/4.
    told = right(FLIP, answers)
    assert told is not None
    assert told.low == pytest.approx(0.025**0.25)
    assert told.high == 1.0


def test_two_federations_that_are_all_right_leave_doubt() -> None:
    told = right(
        SAMPLES, [QuadrupleAnswer(SAMPLES, task, 0, 90, 90) for task in ("a-b", "a-c")]
    )
    assert told == proportion(2.0, 2)


def test_clients_of_a_federation_share_its_trial() -> None:
    told = right(
        FLIP, [QuadrupleAnswer(FLIP, "a-b", 0, 4, 5), QuadrupleAnswer(FLIP, "a-c", 0, 1, 5)]
    )
    assert told == proportion(1.0, 2)


def test_a_row_stands_beside_the_published_attack() -> None:
    row = attribute_rows()[0]
    answers = [
        QuadrupleAnswer(test, task.key, seed, 6, 10)
        for test in TESTS
        for task in row.quadruple.tested
        for seed in (0, 1)
        if test != OTHER_START
    ]
    figures = {one.name: one for one in row_figures(row, "here", answers)}
    assert set(figures) == {f"row1_{test}" for test in (*TESTS, EACH_A_TRIAL)}
    assert figures["row1_samples"].ours == pytest.approx(0.6)
    assert {name for name, one in figures.items() if one.published} == {
        "row1_samples",
        "row1_samples_other_start",
    }
    # Of one seed there is no other start.
    other = figures["row1_samples_other_start"]
    assert other.ours is None
    assert "two seeds" in other.setting
    # 24 of 40 samples.
    each = figures[f"row1_{EACH_A_TRIAL}"]
    assert (each.low, each.high) == (proportion(24.0, 40).low, proportion(24.0, 40).high)


def test_rows_together_stand_beside_the_mean_of_the_published() -> None:
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


def test_a_row_without_data_has_no_number_of_ours() -> None:
    told = not_run(attribute_rows()[-1])
    assert told.ours is None
    assert told.published == pytest.approx(0.6337)
    assert "not run" in told.setting
