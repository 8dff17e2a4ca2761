"""What is claimed of one sender's updates is scored by the numbers one gets by hand."""

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.scorer import Score
from overheard.core.truth import GroundTruth
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.same_sender.scorer import SameSenderScorer

SCORER = SameSenderScorer()
OWN, *OTHERS = (Party(f"anon/0-{number}") for number in range(5))
TRUTH = GroundTruth(
    {}, {}, users={OWN: "u", OTHERS[0]: "v", OTHERS[1]: "u", OTHERS[2]: "w", OTHERS[3]: "u"}
)


def scores(claim: SameSender, truth: GroundTruth = TRUTH) -> tuple[Score, ...]:
    true = SCORER.truth(truth, OWN, (0,), claim)
    return SCORER.score(claim, true, SCORER.guesses(true, Knowledge(classes=2)))


def compared(*numbers: float) -> SameSender:
    return SameSender(tuple(OTHERS[: len(numbers)]), torch.tensor(numbers, dtype=torch.float32))


def test_the_truth_is_who_is_the_same_user() -> None:
    assert SCORER.truth(TRUTH, OWN, (0,), compared(0, 0, 0, 0)).numbers() == (0, 1, 0, 1)


def test_average_precision_stands_beside_that_of_a_random_order() -> None:
    # Order: v u u w, so ranks 2 and 3: (1/2 + 2/3) / 2 = 7/12. At random each of the 6 pairs of
    # ranks is as likely: 1, 5/6, 3/4, 7/12, 1/2 and 5/12 have the mean 49/72.
    (got,) = scores(compared(9, 5, 1, 4))
    assert got.value == pytest.approx(7 / 12)
    assert got.blind == pytest.approx(49 / 72)


def test_the_order_in_which_others_are_named_is_no_evidence() -> None:
    (got,) = scores(compared(1, 1, 1, 1))
    assert got.gain == 0


def test_where_all_others_or_none_are_the_same_there_is_nothing_to_rank() -> None:
    assert scores(compared(1.0)) == ()
    same = GroundTruth({}, {}, users=dict.fromkeys((OWN, *OTHERS), "u"))
    assert scores(compared(1, 2, 3, 4), same) == ()


def test_a_comparison_with_somebody_unknown_to_the_truth_is_named() -> None:
    short = GroundTruth({}, {}, users={OWN: "u"})
    with pytest.raises(NeedsError, match="anon/0-1"):
        SCORER.truth(short, OWN, (0,), compared(1.0))


def test_a_claim_about_others_than_the_truth_is_a_wrong_call() -> None:
    true = SCORER.truth(TRUTH, OWN, (0,), compared(0, 0, 0, 0))
    guesses = SCORER.guesses(true, Knowledge(classes=2))
    with pytest.raises(ValueError, match="others than the truth"):
        SCORER.score(compared(1.0, 2.0), true, guesses)
