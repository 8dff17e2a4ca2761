import numpy as np
import pytest

from overheard.papers.deanonymization.cross_modal import balanced_precision
from overheard.statistics.matching import Matches


def pairs(scores: list[float], same: list[bool]) -> Matches:
    return Matches(
        np.array(scores), np.array(same), np.zeros(len(scores), dtype=np.int64), 1, 0
    )


def test_scores_that_say_nothing_get_a_half_however_many_pairs_are_of_two_people() -> None:
    assert balanced_precision(pairs([1.0] * 11, [True] + [False] * 10)) == pytest.approx(0.5)


def test_a_true_pair_below_half_of_the_others_is_worth_two_thirds() -> None:
    # Others weigh 1/2 each and together 1: precision 1 / (1 + 1/2) at the true pair.
    assert balanced_precision(pairs([3.0, 2.0, 1.0], [False, True, False])) == pytest.approx(
        2 / 3
    )
