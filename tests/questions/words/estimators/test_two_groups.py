"""The probability of use, from evidence and public text."""

import numpy as np
import pytest

from overheard.questions.words.estimators.two_groups import log_odds_of_use

DRAWS = np.random.default_rng(0)

PUBLIC = (1000 / np.arange(1, 3001)).round()
"""Counts that fall with the rank of a word, as in any text (Zipf)."""

IS_USED = DRAWS.random(3000) < 1 - np.exp(-0.05 * PUBLIC)


def average_rank_of_used(scores, is_used) -> float:
    """The probability that a used word ranks above an unused one."""
    ranks = scores.argsort().argsort()
    return float((ranks[is_used][:, None] > ranks[~is_used][None]).mean())


def test_words_above_a_clear_gap_are_probable_and_all_others_are_not():
    evidence = 10.0 * IS_USED + DRAWS.normal(size=3000)
    found = log_odds_of_use([evidence], PUBLIC)
    assert np.mean((found > 0) == IS_USED) > 0.99


def test_weak_evidence_and_public_text_rank_better_than_either():
    evidence = 1.0 * IS_USED + DRAWS.normal(size=3000)
    both = average_rank_of_used(log_odds_of_use([evidence], PUBLIC), IS_USED)
    assert both > average_rank_of_used(evidence, IS_USED) + 0.02
    assert both > average_rank_of_used(PUBLIC, IS_USED) + 0.02


def test_random_evidence_leaves_the_order_of_public_text():
    found = log_odds_of_use([DRAWS.normal(size=3000)], PUBLIC)
    # Public text alone has 0.82.
    assert average_rank_of_used(found, IS_USED) > 0.75


def test_two_sources_find_what_each_misses():
    # A half of the used words is seen by one source alone, the other half by the other.
    is_first = DRAWS.random(3000) < 0.5
    sources = [
        8.0 * (IS_USED & part) + DRAWS.normal(size=3000) for part in (is_first, ~is_first)
    ]
    assert average_rank_of_used(log_odds_of_use(sources, PUBLIC), IS_USED) > 0.97


def test_equal_evidence_counts_equally():
    found = log_odds_of_use([np.zeros(50)], np.ones(50))
    assert found == pytest.approx(np.full(50, found[0]))
    assert np.isfinite(found).all()
