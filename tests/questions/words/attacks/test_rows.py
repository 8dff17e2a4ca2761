"""Words as two groups, robust scores, and public words."""

import numpy as np
import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.token_words import TokenWords
from overheard.questions.words.attacks.rows import log_odds_of_use
from overheard.questions.words.estimators.evidence import robust_scores
from overheard.questions.words.estimators.public_words import (
    claim_words,
    count_words,
    find_rare_words,
)

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


def test_scores_are_deviations_from_the_median_in_their_median():
    # Median 2; deviations 2, 1, 0, 1, 98 have the median 1.
    found = robust_scores(torch.tensor([0.0, 1, 2, 3, 100]))
    assert found.tolist() == [-2, -1, 0, 1, 98]


def test_rows_that_are_exactly_alike_do_not_divide_by_zero():
    assert robust_scores(torch.tensor([0.0, 0, 0, 5])).tolist() == pytest.approx([0, 0, 0, 1e6])
    assert robust_scores(torch.ones(3)).tolist() == [0, 0, 0]


WORDS = TokenWords(6, 2, ("and", "bread", "crumb", "dough"))

TEXTS = Examples(torch.tensor([[2, 2, 3], [3, 1, 0]]), torch.tensor([1, 0]))


def test_examples_are_counted_not_words_and_padding_is_left_out():
    # "and" twice in one text, "bread" in both.
    assert count_words(TEXTS, WORDS).tolist() == [1, 2, 0, 0]


def test_labels_count_if_they_are_words():
    # The labels are tokens 3 and 2; the first text has token 3 already.
    words = TokenWords(6, 2, WORDS.words, first_label=2)
    assert count_words(TEXTS, words).tolist() == [2, 2, 0, 0]


def test_all_but_the_most_frequent_tenth_are_rare():
    counts = torch.arange(20.0)
    assert find_rare_words(counts).tolist() == [True] * 18 + [False] * 2
    # Words tied with a rare one are rare.
    assert find_rare_words(torch.zeros(20)).all()


def test_claim_marks_rare_words_and_names_all():
    claim = claim_words(torch.arange(4.0), Knowledge(2, auxiliary=TEXTS, facts=Facts(WORDS)))
    assert claim.names == WORDS.words
    assert claim.is_rare.tolist() == [True, False, True, True]
    assert claim.candidates() == ("dough", "crumb", "and")
