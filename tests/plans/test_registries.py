"""Scores are displayed as their question defines."""

import pytest

from overheard.plans.registries import questions, score_measure


def test_l1_is_displayed_as_total_variation_in_percent() -> None:
    # l1 0.16 -> half of it, 0.08, in percent.
    assert score_measure("label_shares", "l1").format(0.16) == "8.0\u00a0%"


def test_an_auc_is_displayed_per_hundred_pairs() -> None:
    assert score_measure("shift", "auc").format(0.934) == "93\u00a0of\u00a0100"


def test_scores_of_one_name_differ_between_questions() -> None:
    shares, changes = (
        score_measure("label_shares", "coverage"),
        score_measure("shift", "coverage"),
    )
    assert shares.title != changes.title


def test_an_unlisted_score_is_displayed_on_its_own_scale() -> None:
    assert score_measure("label_shares", "js").format(0.25) == "0.25"


@pytest.mark.parametrize("name", questions())
def test_every_question_lists_its_headline(name: str) -> None:
    question = questions()[name]
    assert question.scorer.headline in question.measures
