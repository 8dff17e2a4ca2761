"""A ranking holds all targets of a run."""

import numpy as np
import pytest

from overheard.questions.identity.statistics.ranking import build_rankings, precision_by_user
from tests.auditing.identity_findings import identity_finding


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
