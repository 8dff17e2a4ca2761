"""Scores of claims about the words that a target used."""

import pytest
import torch

from overheard.core.errors import ClaimError, NeedsError
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.parties import COHORT, client
from overheard.core.truth import GroundTruth, Partition
from overheard.questions.words.claim import Words
from overheard.questions.words.scorer.words import WordsScorer

NAMES = tuple("abcdefghij")

WORDS = TokenWords(12, 2, NAMES)

POOL = Examples(
    torch.tensor([[2, 3, 1], [4, 0, 0], [2, 11, 0]]), torch.zeros(3, dtype=torch.int64)
)


TRUTH = GroundTruth(
    partition=Partition(
        POOL,
        {
            (0, client(0)): torch.tensor([0]),
            (1, client(0)): torch.tensor([1]),
            (0, client(1)): torch.tensor([2]),
        },
        WORDS,
    ),
)

ASKED = Words(torch.zeros(10), NAMES)


def used_by(target, rounds) -> str:
    true = WordsScorer().true_claim(TRUTH, target, rounds, ASKED)
    return "".join(name for name, one in zip(NAMES, true.scores.tolist(), strict=True) if one)


def test_true_words_are_those_of_the_examples_in_the_observed_rounds():
    assert used_by(client(0), (0,)) == "ab"
    assert used_by(client(0), (0, 1)) == "abc"
    assert used_by(COHORT, (0, 1)) == "abcj"


def test_truth_lists_the_words_that_the_claim_lists():
    claim = Words(torch.arange(10.0), NAMES)
    true = WordsScorer().true_claim(TRUTH, client(0), (0,), claim)
    assert true.candidates() == claim.candidates() == tuple("jihgfedcba")
    assert true.numbers() == (0, 0, 0, 0, 0, 0, 0, 0, 1, 1)


def test_truth_without_texts_is_refused():
    with pytest.raises(NeedsError, match="only a simulated run"):
        WordsScorer().true_claim(GroundTruth(), client(0), (0,), ASKED)
    numbers = GroundTruth(partition=Partition(POOL, {(0, client(0)): torch.arange(1)}))
    with pytest.raises(NeedsError, match="are no texts"):
        WordsScorer().true_claim(numbers, client(0), (0,), ASKED)


def test_claim_about_another_vocabulary_is_refused():
    with pytest.raises(ClaimError, match="about 2 words, but the vocabulary has 10"):
        WordsScorer().true_claim(TRUTH, client(0), (0,), Words(torch.zeros(2), ("a", "b")))


def scores_of(claim: Words, known: Knowledge) -> dict[str, tuple[float, dict[str, float]]]:
    scorer = WordsScorer()
    true = scorer.true_claim(TRUTH, client(0), (0, 1), claim)
    scores = scorer.score(claim, true, scorer.guesses(true, known))
    return {one.name: (one.value, dict(one.uninformed)) for one in scores}


def test_rare_words_alone_count_for_the_headline():
    # a, b and c are used, and a is frequent. By the claim b has rank 1 and c rank 3 among rare
    # words: (1 / 1 + 2 / 3) / 2. Among all words a is second: (1 + 2 / 2 + 3 / 4) / 3.
    is_rare = torch.ones(10, dtype=torch.bool)
    is_rare[0] = False
    claim = Words(torch.tensor([8.0, 9, 6, 7, 0, 0, 0, 0, 0, 0]), NAMES, is_rare)
    found = scores_of(claim, Knowledge(2))
    assert found["rare_word_precision"][0] == pytest.approx(5 / 6)
    assert found["word_precision"][0] == pytest.approx(11 / 12)
    # As many rare words as were used are listed: b and d, of which b was used.
    assert found["rare_words_named"][0] == 0.5


def test_guess_ranks_words_by_public_text():
    public = Examples(torch.tensor([[3, 4, 0], [3, 0, 0]]), torch.zeros(2, dtype=torch.int64))
    known = Knowledge(2, auxiliary=public, facts=Facts(WORDS))
    uninformed = scores_of(ASKED, known)["word_precision"][1]
    # b, then c, then a among eight that tie.
    harmonic = sum(1 / rank for rank in range(3, 11))
    assert uninformed["public text"] == pytest.approx((1 + 1 + 3 * harmonic / 8) / 3)
    assert list(uninformed) == ["public text", "any order"]
    # Three of ten words in any order: (H + 2 (10 - H) / 9) / 10 for H = 1 + 1/2 + .. + 1/10.
    assert uninformed["any order"] == pytest.approx((2.92897 + 2 * 7.07103 / 9) / 10, abs=1e-5)
    assert list(scores_of(ASKED, Knowledge(2))["word_precision"][1]) == ["any order"]


def test_client_without_a_rare_word_has_no_rare_score():
    is_rare = torch.zeros(10, dtype=torch.bool)
    is_rare[9] = True
    assert set(scores_of(Words(torch.zeros(10), NAMES, is_rare), Knowledge(2))) == {
        "word_precision"
    }
