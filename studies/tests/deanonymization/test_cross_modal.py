import numpy as np
import pytest

from overheard.statistics.roc import ScoredPairs
from overheard_studies.deanonymization.other_claims import balanced_precision


def pairs(scores: list[float], same: list[bool]) -> ScoredPairs:
    return ScoredPairs(
        np.array(scores), np.array(same), np.zeros(len(scores), dtype=np.int64), 1, 0
    )


def test_constant_scores_have_a_precision_of_one_half_for_any_balance() -> None:
    assert balanced_precision(pairs([1.0] * 11, [True] + [False] * 10)) == pytest.approx(0.5)


def test_a_true_pair_below_half_of_the_others_has_a_precision_of_two_thirds() -> None:
    # The others have weight 1/2 each and 1 in total: precision 1 / (1 + 1/2) at the true pair.
    assert balanced_precision(pairs([3.0, 2.0, 1.0], [False, True, False])) == pytest.approx(
        2 / 3
    )
