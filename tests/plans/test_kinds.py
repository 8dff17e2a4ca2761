"""Scores are told as their question says."""

import pytest

from overheard.plans.kinds import measure, questions


def test_total_variation_is_half_of_l1_in_percent() -> None:
    # l1 0.16 -> half of it, 0.08, in percent.
    assert measure("label_shares", "l1").tell(0.16) == "8.0\u00a0%"


def test_pairs_told_apart_are_counted_of_a_hundred() -> None:
    assert measure("shift", "auc").tell(0.934) == "93\u00a0of\u00a0100"


def test_one_name_of_a_score_is_told_as_either_question_says() -> None:
    shares, changes = measure("label_shares", "coverage"), measure("shift", "coverage")
    assert shares.title != changes.title


def test_a_score_that_its_question_does_not_list_is_told_on_its_own_scale() -> None:
    assert measure("label_shares", "js").tell(0.25) == "0.25"


@pytest.mark.parametrize("name", questions())
def test_every_question_lists_its_headline(name: str) -> None:
    question = questions()[name]
    assert question.scorer.headline in question.measures
