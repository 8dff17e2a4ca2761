"""Counts of words in public text, and which of them are rare."""

import torch

from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.token_words import TokenWords
from overheard.questions.words.estimators.public_words import (
    claim_words,
    count_words,
    find_rare_words,
)

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
