"""Known users are named right while few strangers pass for one of them."""

import numpy as np
import pytest

from overheard.core.seeds import Seed
from overheard.questions.identity.statistics.open_set import (
    OpenSet,
    detection_identification_rate,
    estimate_identification_rate,
    split_known_and_unknown,
)
from overheard.questions.identity.statistics.ranking import build_rankings
from tests.auditing.identity_findings import identity_finding, identity_run

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
