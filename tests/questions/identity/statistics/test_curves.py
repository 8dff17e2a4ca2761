"""Curves, rankings and open sets."""

import numpy as np
import pytest

from overheard.core.seeds import Seed
from overheard.questions.identity.pages.identity_figures import cmc_curve, identification_curve
from overheard.questions.identity.statistics.open_set import (
    OpenSet,
    detection_identification_rate,
    estimate_identification_rate,
    split_known_and_unknown,
)
from overheard.questions.identity.statistics.ranking import build_rankings, precision_by_user
from tests.auditing.identity_findings import identity_finding, identity_run


def test_the_share_within_k_guesses_matches_a_value_worked_by_hand() -> None:
    # b is first; c and d share ranks 3 and 4 after a and b; the unknown user does not count.
    ranked = build_rankings([
        identity_finding((0, 1, 0, 0), "b", 0),
        identity_finding((2, 1, 0, 0), "c", 1),
        identity_finding((2, 1, 0, 0), "stranger", 2),
    ])  # fmt: skip
    assert cmc_curve(ranked, (1, 2, 3, 4)) == pytest.approx([1 / 2, 1 / 2, 3 / 4, 1])


def test_the_identification_rate_rises_with_the_false_alarms() -> None:
    rates = identification_curve(
        build_rankings(identity_run(2.0, strangers=5)), (0.0, 10.0, 50.0, 100.0)
    )
    assert (np.diff(rates) >= 0).all()
    assert rates[0] < rates[-1]
    assert rates[-1] == pytest.approx(
        cmc_curve(build_rankings(identity_run(2.0, strangers=5)), (1,))[0]
    )


def test_the_precision_of_each_user_matches_a_value_worked_by_hand() -> None:
    # By the score for a: targets 0 (b's), 1 (a's), 2 (a's): (1/2 + 2/3) / 2 = 7/12. By that
    # for b: its own target 0 is last of three: 1/3. c and d sent nothing.
    findings = [
        identity_finding((0.9, 0.1, 0, 0), "b", 0),
        identity_finding((0.8, 0.2, 0, 0), "a", 1),
        identity_finding((0.7, 0.3, 0, 0), "a", 2),
    ]
    assert precision_by_user(build_rankings(findings)) == pytest.approx(
        {(0, "a"): 7 / 12, (0, "b"): 1 / 3}
    )
    (ranking,) = build_rankings(findings)
    # In a random order a's two are at 1 and 2, 1 and 3, or 2 and 3; b's one at 1, 2 or 3.
    assert ranking.random_precisions() == pytest.approx([(1 + 5 / 6 + 7 / 12) / 3, 11 / 18])


def test_ranks_targets_only_within_their_run() -> None:
    findings = [
        identity_finding((9, 0, 0, 0), "b", 0, seed=1),
        identity_finding((1, 0, 0, 0), "a", 0, seed=2),
    ]
    assert precision_by_user(build_rankings(findings)) == {(1, "b"): 1.0, (2, "a"): 1.0}


def test_ranks_a_user_missing_from_a_claim_last() -> None:
    findings = [
        identity_finding((0.5, 0.1), "b", 0, users=("a", "b")),
        identity_finding((0.5,), "b", 1, users=("a",), known=("a", "b")),
    ]
    (ranking,) = build_rankings(findings)
    assert ranking.scores[1].tolist() == [0.5, -np.inf]
    assert ranking.known_count == 1


def test_keeps_probabilities_of_unknown_users_only_if_all_targets_have_one() -> None:
    with_probability = identity_finding((1, 0, 0, 0), "a", 0, unseen=0.25)
    (complete,) = build_rankings([with_probability])
    assert complete.unknown_probability.tolist() == [0.25]
    (incomplete,) = build_rankings([with_probability, identity_finding((1, 0, 0, 0), "a", 1)])
    assert incomplete.unknown_probability is None


HELD = OpenSet(
    known_evidence=np.array([0.9, 0.8, 0.7, 0.3]),
    rank1_probability=np.array([1.0, 0.0, 1.0, 1.0]),
    known_user=np.array([0, 0, 1, 1]),
    unknown_evidence=np.array([0.6, 0.5]),
    unknown_user=np.array([2, 2]),
    known_count=2,
    unknown_count=1,
)


@pytest.mark.parametrize(
    ("percent", "rate"),
    [
        (1.0, 2 / 4),  # none of two may pass: above 0.6 lie 0.9, 0.8 and 0.7, two of them right
        (49.0, 2 / 4),
        (50.0, 2 / 4),  # one may: above 0.5 lie the same
        (100.0, 3 / 4),  # all may
    ],
)
def test_the_rate_matches_values_worked_by_hand(percent: float, rate: float) -> None:
    assert detection_identification_rate(HELD, percent) == rate


def test_one_of_a_hundred_unknown_targets_may_pass() -> None:
    strange = np.linspace(0, 0.99, 100)  # the highest 0.99, the next 0.98
    held = OpenSet(np.array([0.985]), np.ones(1), np.zeros(1, int), strange,
                   np.ones(100, int), 1, 1)  # fmt: skip
    assert detection_identification_rate(held, 1.0) == 1
    assert detection_identification_rate(held, 0.9) == 0


def test_evidence_is_the_claimed_probability_or_else_the_highest_score() -> None:
    scores = ((0.1, 0.7, 0.7, 0.0), "b"), ((0.9, 0.0, 0.0, 0.0), "stranger")
    claimed = [
        identity_finding(s, user, n, unseen=0.3 + 0.5 * n) for n, (s, user) in enumerate(scores)
    ]
    (with_claim,) = map(split_known_and_unknown, build_rankings(claimed))
    assert with_claim.known_evidence == pytest.approx([0.7])
    assert with_claim.unknown_evidence == pytest.approx([0.2])
    assert with_claim.rank1_probability == [0.5]  # b shares the first place with c
    silent = [identity_finding(s, user, n) for n, (s, user) in enumerate(scores)]
    (without_claim,) = map(split_known_and_unknown, build_rankings(silent))
    assert (without_claim.known_evidence.tolist(), without_claim.unknown_evidence.tolist()) == (
        [0.7],
        [0.9],
    )


def test_identifies_users_with_informative_scores_only() -> None:
    for strength, low, high in ((6.0, 0.8, 1.0), (0.0, 0.0, 0.1)):
        held = [
            split_known_and_unknown(one)
            for one in build_rankings(identity_run(strength, strangers=6, updates=20))
        ]
        rate = estimate_identification_rate([one for one in held if one], 1.0, Seed(0))
        assert low <= rate.mean <= high
        assert rate.low <= rate.mean <= rate.high
