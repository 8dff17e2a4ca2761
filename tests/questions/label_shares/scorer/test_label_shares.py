"""Scores of label shares equal the numbers worked out by hand."""

import math
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy, wasserstein_distance

from overheard.core.errors import ClaimError
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.parties import COHORT, client
from overheard.core.scorer import Score
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.truth import GroundTruth
from overheard.learning.simplex import normalize_to_shares
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.scorer.label_shares import KL_FLOOR, LabelSharesScorer

SCORER = LabelSharesScorer()
ANY_CLAIM = LabelShares(torch.tensor([0.5, 0.5]))
"""A claim whose content does not affect the truth."""

DISTANCES = ("l1", "l2", "linf", "wasserstein", "kl", "js")


def scores(claim: LabelShares, truth: LabelShares) -> dict[str, Score]:
    knowledge = Knowledge(classes=len(truth.shares))
    given_scores = SCORER.score(claim, truth, SCORER.guesses(truth, knowledge))
    return {score.name: score for score in given_scores}


def values(claim: LabelShares, truth: LabelShares) -> dict[str, float]:
    return {name: score.value for name, score in scores(claim, truth).items()}


def shares(*numbers: float, absent: list[bool] | None = None) -> LabelShares:
    mask = None if absent is None else torch.tensor(absent)
    return LabelShares(torch.tensor(numbers, dtype=torch.float64), mask)


@st.composite
def pairs_of_claims(draw: st.DrawFn) -> tuple[LabelShares, LabelShares]:
    classes = draw(st.integers(2, 8))
    weights = st.lists(st.integers(0, 50), min_size=classes, max_size=classes).filter(any)
    both = [torch.tensor(draw(weights), dtype=torch.float64) for _ in range(2)]
    claim, truth = (LabelShares(normalize_to_shares(each), absent=each == 0) for each in both)
    return claim, truth


def test_distances_equal_those_worked_out_by_hand() -> None:
    got = values(claim=shares(0.25, 0.25, 0.5, 0.0), truth=shares(0.5, 0.25, 0.0, 0.25))
    # Errors of the claim: -0.25, 0, +0.5, -0.25.
    assert got["l1"] == pytest.approx(1.0)
    assert got["l2"] == pytest.approx(math.sqrt(0.0625 + 0.25 + 0.0625))
    assert got["linf"] == pytest.approx(0.5)
    # Running sums of the errors over the first three labels: -0.25, -0.25, +0.25.
    assert got["wasserstein"] == pytest.approx(0.75)
    # 0.5 ln(0.5 / 0.25) + 0.25 ln(0.25 / 0.25) + 0 + 0.25 ln(0.25 / 1e-12)
    by_hand = 0.5 * math.log(2) + 0.25 * math.log(0.25e12)
    assert got["kl"] == pytest.approx(by_hand, abs=1e-9)
    # The middle is (0.375, 0.25, 0.25, 0.125).
    # Truth to middle: 0.5 ln(4/3) + 0.25 ln 1 + 0.25 ln 2.
    # Claim to middle: 0.25 ln(2/3) + 0.25 ln 1 + 0.5 ln 2.
    by_hand = (
        0.5 * math.log(4 / 3) + 0.25 * math.log(2) + 0.25 * math.log(2 / 3) + 0.5 * math.log(2)
    ) / 2
    assert got["js"] == pytest.approx(by_hand)


def test_top1_divides_one_point_among_tied_claims() -> None:
    truth = shares(0.4, 0.4, 0.2, 0.0)
    assert values(shares(0.1, 0.7, 0.1, 0.1), truth)["top1"] == 1.0
    assert values(shares(0.1, 0.1, 0.7, 0.1), truth)["top1"] == 0.0
    # Labels 1 and 2 tie as the claimed majority, one of them is a true majority.
    assert values(shares(0.1, 0.4, 0.4, 0.1), truth)["top1"] == pytest.approx(1 / 2)
    # All four tie, two of them are true majorities.
    assert values(shares(0.25, 0.25, 0.25, 0.25), truth)["top1"] == pytest.approx(2 / 4)


def test_top3_is_the_fraction_of_the_three_most_frequent_that_is_claimed() -> None:
    truth = shares(0.4, 0.3, 0.2, 0.1, 0.0)
    # Claimed: 0, 3, 4; correct: 0.
    assert values(shares(0.4, 0.05, 0.05, 0.2, 0.3), truth)["top3"] == pytest.approx(1 / 3)
    # Claimed: each label with 3 / 5 of a place; correct: three of them, 9 / 5 of 3.
    assert values(shares(0.2, 0.2, 0.2, 0.2, 0.2), truth)["top3"] == pytest.approx(3 / 5)


def test_top3_accepts_any_truly_tied_label_up_to_the_remaining_places() -> None:
    # One label is above the tie; three tie for the two remaining places.
    truth = shares(0.4, 0.2, 0.2, 0.2)
    assert values(shares(0.4, 0.3, 0.1, 0.2), truth)["top3"] == 1.0
    # Two labels are above the tie, of which one is claimed; the tied ones have one place left.
    pairs = shares(0.3, 0.3, 0.2, 0.2)
    assert values(shares(0.3, 0.0, 0.4, 0.3), pairs)["top3"] == pytest.approx(2 / 3)
    # All tied labels are claimed, the one above them is not: two of three places.
    assert values(shares(0.0, 0.4, 0.3, 0.3), truth)["top3"] == pytest.approx(2 / 3)


def test_top3_asks_for_no_more_labels_than_the_target_holds() -> None:
    truth = shares(1.0, 0.0, 0.0, 0.0)
    assert values(shares(0.9, 0.1, 0.0, 0.0), truth)["top3"] == 1.0
    assert values(shares(0.1, 0.9, 0.0, 0.0), truth)["top3"] == 0.0


def test_counts_labels_claimed_absent() -> None:
    truth = shares(0.5, 0.5, 0.0, 0.0, 0.0)
    claim = shares(0.4, 0.3, 0.3, 0.0, 0.0, absent=[False, True, False, True, True])
    # Claimed absent: 1, 3, 4; truly absent: 2, 3, 4.
    got = values(claim, truth)
    assert got["null_precision"] == pytest.approx(2 / 3)
    assert got["null_recall"] == pytest.approx(2 / 3)
    assert got["null_exact"] == 0.0


def test_claiming_no_absence_has_full_precision_and_no_recall() -> None:
    claim = shares(0.5, 0.5, absent=[False, False])
    got = values(claim, shares(1.0, 0.0))
    assert (got["null_precision"], got["null_recall"], got["null_exact"]) == (1, 0, 0)


def test_recall_is_1_if_no_label_is_absent() -> None:
    truth = shares(0.5, 0.5)
    right = values(shares(0.5, 0.5, absent=[False, False]), truth)
    assert (right["null_precision"], right["null_recall"], right["null_exact"]) == (1, 1, 1)
    wrong = values(shares(1.0, 0.0, absent=[False, True]), truth)
    assert (wrong["null_precision"], wrong["null_recall"], wrong["null_exact"]) == (0, 1, 0)


def test_null_precision_has_no_uninformed_guess() -> None:
    claim = shares(0.5, 0.5, 0.0, absent=[False, False, True])
    got = scores(claim, shares(0.5, 0.5, 0.0))
    assert got["null_precision"].best_uninformed is None
    # The uninformed guess claims none of the absent labels.
    assert got["null_recall"].uninformed == {"uniform": 0.0}
    assert got["null_exact"].gain == 1.0


def test_distances_have_the_uniform_guess_and_the_true_support_as_references() -> None:
    got = scores(shares(0.5, 0.5, 0.0, 0.0), shares(0.75, 0.25, 0.0, 0.0))
    # Uniform: 0.5 + 0 + 0.25 + 0.25. The claim is the guess on the support: 0.25 + 0.25.
    assert got["l1"].uninformed == {"uniform": pytest.approx(1.0)}
    assert got["l1"].gain == pytest.approx(0.5)
    assert got["l1"].references == {"uniform on the true support": pytest.approx(0.5)}


def test_known_auxiliary_shares_are_an_uninformed_guess() -> None:
    auxiliary = Examples(torch.zeros(4, 1), torch.tensor([0, 0, 0, 1]))
    truth = shares(0.75, 0.25)
    guesses = SCORER.guesses(truth, Knowledge(classes=2, auxiliary=auxiliary))
    l1 = SCORER.score(shares(0.5, 0.5), truth, guesses)[0]
    # Three of four auxiliary examples have label 0: exactly the truth.
    assert l1.uninformed == {
        "uniform": pytest.approx(0.5),
        "auxiliary prior": pytest.approx(0.0),
    }
    assert l1.gain == pytest.approx(-0.5)


def test_the_truth_sums_the_requested_rounds() -> None:
    truth = GroundTruth(
        Facts(
            LabelCounts(
                {
                    (1, client(0)): torch.tensor([3, 1, 0]),
                    (2, client(0)): torch.tensor([0, 4, 0]),
                    (3, client(0)): torch.tensor([0, 0, 9]),
                    (1, client(1)): torch.tensor([2, 0, 0]),
                }
            )
        )
    )
    # (3 + 0, 1 + 4, 0) of 8
    own = SCORER.true_claim(truth, client(0), [1, 2], ANY_CLAIM)
    assert own.shares.tolist() == [3 / 8, 5 / 8, 0]
    assert own.absent.tolist() == [False, False, True]
    # (3 + 2, 1, 0) of 6
    assert SCORER.true_claim(truth, COHORT, [1], ANY_CLAIM).shares.tolist() == [5 / 6, 1 / 6, 0]


def test_a_client_without_examples_has_no_true_shares() -> None:
    truth = GroundTruth(Facts(LabelCounts({(1, client(0)): torch.tensor([0, 0])})))
    with pytest.raises(ValueError, match="client/0 has no training examples"):
        SCORER.true_claim(truth, client(0), [1], ANY_CLAIM)


def test_a_claim_about_another_number_of_labels_is_refused() -> None:
    with pytest.raises(ClaimError, match="has 3 labels, the truth has 2"):
        values(shares(0.5, 0.5, 0.0), shares(0.5, 0.5))


def test_float32_rounding_of_a_correct_claim_costs_nothing() -> None:
    thirds = LabelShares(torch.full((3,), 1 / 3 + 2e-5))
    got = values(thirds, LabelShares(torch.full((3,), 1 / 3, dtype=torch.float64)))
    assert max(got[name] for name in DISTANCES) < 1e-12


@given(pairs_of_claims())
def test_distances_stay_within_their_bounds(pair: tuple[LabelShares, LabelShares]) -> None:
    got = values(*pair)
    slack = 1e-9
    assert 0 <= got["linf"] <= got["l2"] + slack
    assert got["l2"] <= got["l1"] + slack
    assert got["l1"] <= 2 + slack
    assert got["wasserstein"] >= got["l1"] / 2 - slack
    assert 0 <= got["js"] <= math.log(2) + slack
    assert got["kl"] >= -slack
    assert all(0 <= score <= 1 for name, score in got.items() if name not in DISTANCES)


@given(pairs_of_claims())
def test_a_perfect_claim_has_perfect_scores(
    pair: tuple[LabelShares, LabelShares],
) -> None:
    truth, _ = pair
    for score in scores(truth, truth).values():
        assert score.value == {"lower": 0, "higher": 1}[score.better]


@given(pairs_of_claims(), st.randoms(use_true_random=False))
def test_only_wasserstein_depends_on_the_order_of_labels(
    pair: tuple[LabelShares, LabelShares], random: Random
) -> None:
    order = list(range(len(pair[0].shares)))
    random.shuffle(order)
    moved = [LabelShares(each.shares[order], absent=each.shares[order] == 0) for each in pair]
    before, after = values(*pair), values(*moved)
    for name in before.keys() - {"wasserstein"}:
        assert after[name] == pytest.approx(before[name], abs=1e-12)


@pytest.mark.slow
@given(pairs_of_claims())
def test_scipy_gives_the_same_distances(pair: tuple[LabelShares, LabelShares]) -> None:
    got = values(*pair)
    claimed, true = (each.shares.numpy() for each in pair)
    places = np.arange(len(true))
    by_scipy = wasserstein_distance(places, places, true, claimed)
    assert got["wasserstein"] == pytest.approx(by_scipy, abs=1e-9)
    # scipy gives the root of the divergence, and NaN where a rounding makes it negative.
    assert got["js"] == pytest.approx(
        np.nan_to_num(jensenshannon(true, claimed)) ** 2, abs=1e-9
    )
    # scipy rescales the floored shares to sum to 1: a difference of the order of the floor.
    assert got["kl"] == pytest.approx(entropy(true + KL_FLOOR, claimed + KL_FLOOR), abs=1e-9)
