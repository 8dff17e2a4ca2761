"""ROC curves and their estimates, worked by hand or compared with scikit-learn."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score, roc_curve

from overheard.core.seeds import Seed
from overheard.findings.finding import ClaimRow
from overheard.questions.identity.statistics.ranking import build_matches, build_rankings
from overheard.questions.same_sender.statistics.sender_pairs import collect_sender_pairs
from overheard.statistics.roc import (
    ScoredPairs,
    compute_roc,
    estimate_auc,
    estimate_equal_error_rate,
    true_positive_rates_at,
)
from tests.auditing.identity_findings import identity_finding, identity_run

SEED = Seed(5)


def pairs(same: list[float], other: list[float]) -> ScoredPairs:
    """Return pairs with a different user each."""
    count = len(same)
    return ScoredPairs(
        np.array(same + other, dtype=np.float64),
        np.arange(count + len(other)) < count,
        np.arange(count + len(other)) % count,
        count,
        0,
    )


def test_a_small_curve_has_the_expected_rates() -> None:
    # 3 and 1 against 2 and 0: 3 of 4 comparisons are in order. At the threshold 2 the true
    # and false positive rates are both a half.
    roc = compute_roc(pairs([3, 1], [2, 0]))
    assert roc.true_positive_rates.tolist() == [[0, 0.5, 0.5, 1, 1]]
    assert roc.false_positive_rates.tolist() == [[0, 0, 0.5, 0.5, 1]]
    assert roc.auc()[0] == 0.75
    assert roc.equal_error_rate()[0] == 0.5


def test_the_equal_error_rate_is_interpolated_between_thresholds() -> None:
    # From (0, 1/3) the next threshold, shared by all others, leads to (1, 1): along it false
    # positives x and false negatives (1 - x) 2/3 meet at x = 2/5.
    assert compute_roc(pairs([2, 1, 1], [1])).equal_error_rate()[0] == pytest.approx(2 / 5)


@pytest.mark.slow
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=8),
    st.lists(st.integers(0, 5), min_size=1, max_size=8),
)
def test_the_curve_equals_sklearns_and_its_figures_lie_in_their_intervals(
    same: list[int], other: list[int]
) -> None:
    scored = pairs([float(one) for one in same], [float(one) for one in other])
    curve = compute_roc(scored)
    assert curve.auc()[0] == pytest.approx(roc_auc_score(scored.is_same_user, scored.scores))
    false_rates, true_rates, _ = roc_curve(
        scored.is_same_user, scored.scores, drop_intermediate=False
    )
    assert curve.false_positive_rates[0] == pytest.approx(false_rates)
    assert curve.true_positive_rates[0] == pytest.approx(true_rates)
    levels = np.array([0.05, 0.3, 0.8])
    assert true_positive_rates_at([scored], levels) == pytest.approx(
        np.interp(levels, false_rates, true_rates)
    )
    # With few thresholds the bootstrap uses all, so that its draws lie around the estimate.
    for estimator in (estimate_auc, estimate_equal_error_rate):
        estimate = estimator([scored], SEED)
        if estimate.low is not None:
            assert estimate.low - 1e-9 <= estimate.mean <= estimate.high + 1e-9


def test_every_target_is_paired_with_every_user() -> None:
    (ranking,) = build_rankings(
        [identity_finding((0.4, 0.3, 0.2, 0.1), "b", 0), identity_finding((1, 2, 3, 4), "x", 1)]
    )
    scored = build_matches(ranking)
    assert scored.scores.tolist() == [0.4, 0.3, 0.2, 0.1, 1, 2, 3, 4]
    assert scored.is_same_user.tolist() == [False, True, *[False] * 6]
    assert (scored.known_users, scored.unknown_users) == (1, 1)


def test_the_auc_interval_is_above_a_half_only_if_users_are_recognised() -> None:
    for strength, low, high in ((2.0, 0.8, 0.97), (0.0, 0.4, 0.6)):
        runs = [
            build_matches(one) for one in build_rankings(identity_run(strength, all_users=20))
        ]
        estimate = estimate_auc(runs, SEED)
        assert low < estimate.low < estimate.mean < estimate.high < high


def test_correlation_within_users_widens_the_interval() -> None:
    widths = []
    for clump in (0.0, 2.0):
        runs = [
            build_matches(one)
            for one in build_rankings(identity_run(1.0, all_users=20, updates=12, clump=clump))
        ]
        estimate = estimate_equal_error_rate(runs, SEED)
        widths.append(estimate.high - estimate.low)
    assert widths[1] > 1.5 * widths[0]


def test_comparisons_of_targets_are_pairs_of_their_users() -> None:
    bare = identity_finding((0.9, 0.1), "a", 0, users=("anon/1", "anon/2"))
    lone = replace(identity_finding((0.2,), "b", 1, users=("anon/2",)), true=ClaimRow((0.0,)))
    (scored,) = collect_sender_pairs([lone, replace(bare, true=ClaimRow((1.0, 0.0)))])
    assert scored.scores.tolist() == [0.2, 0.9, 0.1]
    assert scored.is_same_user.tolist() == [False, True, False]
    # User a has a true pair and comes first.
    assert scored.target_users.tolist() == [1, 0, 0]
    assert (scored.known_users, scored.unknown_users) == (1, 1)
    assert collect_sender_pairs([lone]) == ()


def test_true_positive_rates_are_means_over_runs() -> None:
    # Run 0: the true pair is above both others: 1 at any rate. Run 1: it is below one of the
    # two, so it is found at a false positive rate of a half.
    first = identity_finding((3, 1, 0), "a", 0, users="abc")
    second = identity_finding((1, 3, 0), "a", 0, users="abc", seed=1)
    runs = [build_matches(one) for one in build_rankings([first, second])]
    assert true_positive_rates_at(runs, np.array([0.0, 0.5])) == pytest.approx([1 / 2, 1])
