"""Claimed intervals, absence probabilities and sizes are compared with the truth."""

from dataclasses import replace

import pytest
import torch

from overheard.core.claims import Interval
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.parties import COHORT, client
from overheard.core.scorer import Score
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.truth import GroundTruth
from overheard.questions.label_shares.claim import LabelShares, SizeEstimate
from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer

SCORER = LabelSharesScorer()
SHARES = torch.tensor([0.5, 0.5, 0.0, 0.0])
ANY_CLAIM = LabelShares(SHARES)
"""A claim whose content does not affect the truth."""
TRUTH = GroundTruth(
    Facts(
        LabelCounts(
            {
                (0, client(0)): torch.tensor([6, 4, 0, 0]),
                (1, client(0)): torch.tensor([2, 4, 0, 0]),
                (1, client(1)): torch.tensor([0, 0, 1, 1]),
            }
        )
    )
)
"""Client 0 holds (8, 8, 0, 0) of 16 over two rounds, 8 per round."""


def scores(claim: LabelShares, rounds: tuple[int, ...] = (0, 1)) -> dict[str, Score]:
    truth = SCORER.true_claim(TRUTH, client(0), rounds, ANY_CLAIM)
    guesses = SCORER.guesses(truth, Knowledge(classes=4))
    return {score.name: score for score in SCORER.score(claim, truth, guesses)}


def bounded(low: tuple[float, ...], high: tuple[float, ...]) -> LabelShares:
    return LabelShares(SHARES, bounds=Interval(low, high))


def test_coverage_is_the_fraction_of_shares_inside_their_intervals() -> None:
    # True shares (0.5, 0.5, 0, 0): the second and the last are below their intervals.
    got = scores(bounded((0.4, 0.6, 0.0, 0.1), (0.6, 0.8, 0.1, 0.3)))
    assert got["coverage"].value == pytest.approx(2 / 4)
    assert got["coverage"].better == "higher"
    assert got["width"].value == pytest.approx((0.2 + 0.2 + 0.1 + 0.2) / 4)
    assert got["width"].better == "lower"


def test_intervals_contain_their_ends_despite_float32_rounding() -> None:
    third = float(torch.tensor(0.1) * 5)  # 0.5 and a rounding above
    got = scores(bounded((third, 0.5, 0.0, 0.0), (0.6, 0.5, 0.0, 0.0)))
    assert got["coverage"].value == 1.0


def test_absence_probabilities_get_a_brier_score() -> None:
    # absent: labels 2 and 3; errors 0.1, 0, 0.5, 1
    claim = LabelShares(SHARES, null_probability=torch.tensor([0.1, 0.0, 0.5, 0.0]))
    brier = scores(claim)["null_brier"]
    assert brier.value == pytest.approx((0.01 + 0 + 0.25 + 1) / 4)
    # A probability of 0.5 always scores 0.25.
    assert brier.uninformed == {"uniform": 0.25}
    assert brier.gain == pytest.approx(0.25 - 0.315)


def test_a_size_is_compared_with_the_examples_per_round() -> None:
    # 10 and 6 examples: 8 per round; 16 and 4 are wrong by a factor of 2
    for size in (16.0, 4.0):
        assert scores(LabelShares(SHARES, size=SizeEstimate(size)))[
            "size_factor"
        ].value == pytest.approx(1)
    right = scores(LabelShares(SHARES, size=SizeEstimate(10.0, 10.0, 12.0)), rounds=(0,))
    assert right["size_factor"].better == "lower"
    assert right["size_factor"].value == pytest.approx(0)
    assert right["size_coverage"].value == 1.0


def test_size_coverage_is_0_outside_the_interval_and_missing_without_one() -> None:
    assert (
        scores(LabelShares(SHARES, size=SizeEstimate(10.0, 9.0, 12.0)))["size_coverage"].value
        == 0.0
    )
    assert "size_coverage" not in scores(LabelShares(SHARES, size=SizeEstimate(8.0)))


def test_the_cohort_has_the_size_of_all_its_clients() -> None:
    # 10 in round 0; 6 + 2 in round 1: 9 per round
    size = SCORER.true_claim(TRUTH, COHORT, (0, 1), ANY_CLAIM).size
    assert size.examples == 9


def test_an_attack_that_doubts_its_own_intervals_is_counted() -> None:
    trusted = bounded((0.4, 0.4, 0.0, 0.0), (0.6, 0.6, 0.1, 0.1))
    doubted = replace(trusted, reason_for_doubt="noise")
    assert scores(trusted)["doubted"].value == 0
    assert scores(doubted)["doubted"].value == 1
    assert scores(doubted)["doubted"].better == "lower"
    assert doubted.doubt() == "noise"
    assert "doubted" not in scores(ANY_CLAIM)
