"""Claims about words."""

import pytest
import torch

from overheard.core.errors import ClaimError
from overheard.questions.words.claim import MOST_LISTED, Words

NAMES = ("and", "bread", "crumb", "dough")


def test_lists_rare_words_with_the_highest_score_first():
    is_rare = torch.tensor([False, True, True, True])
    claim = Words(torch.tensor([9.0, 1.0, 3.0, 2.0]), NAMES, is_rare)
    assert claim.candidates() == ("crumb", "dough", "bread")
    assert claim.numbers() == (3.0, 2.0, 1.0)


def test_lists_at_most_a_hundred_words_and_cuts_long_ones():
    names = ("x" * 10_000, *map(str, range(1, 300)))
    claim = Words(torch.arange(300.0).flip(0), names)
    first = claim.candidates()[0]
    assert len(claim.numbers()) == len(claim.candidates()) == MOST_LISTED
    assert first == f"{'x' * 40}… (word 1)"


@pytest.mark.parametrize(
    ("scores", "names", "message"),
    [
        ([float("nan"), 0, 0, 0], NAMES, "all finite"),
        ([], (), "one or more"),
        ([0, 0, 0], NAMES, "3 scores need as many different words, got 4"),
        ([0, 0, 0, 0], ("and", "and", "crumb", "dough"), "got 3"),
    ],
)
def test_refuses_scores_that_cannot_be_ranked_and_names_of_other_words(scores, names, message):
    with pytest.raises(ClaimError, match=message):
        Words(torch.tensor(scores, dtype=torch.float32), names)
