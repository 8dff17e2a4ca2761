"""Pairs are told apart by one threshold."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from overheard.core.seeds import Seed
from overheard.questions.identity.statistics.ranking import matches, rankings
from overheard.questions.same_sender.statistics.pairs import sender_matches
from overheard.statistics.matching import (
    Matches,
    curve,
    equal_error_rate,
    hits_at,
    matching_auc,
)
from tests.auditing.recognised import found, run

SEED = Seed(5)


def pairs(same: list[float], other: list[float]) -> Matches:
    """Each pair a person's of its own."""
    count = len(same)
    return Matches(
        np.array(same + other, dtype=np.float64),
        np.arange(count + len(other)) < count,
        np.arange(count + len(other)) % count,
        count,
        0,
    )


def test_a_curve_is_worked_by_hand() -> None:
    # 3 and 1 against 2 and 0: 3 of 4 pairs of pairs are in order. At the threshold 2 a half of
    # the true ones is missed and a half of the others passes.
    held = curve(pairs([3, 1], [2, 0]))
    assert held.hits.tolist() == [[0, 0.5, 0.5, 1, 1]]
    assert held.false_alarms.tolist() == [[0, 0, 0.5, 0.5, 1]]
    assert held.area()[0] == 0.75
    assert held.equal_error()[0] == 0.5


def test_scores_that_tell_all_pairs_apart_err_never_and_turned_around_always() -> None:
    for same, other, area in (([3, 4], [1, 2], 1.0), ([1, 2], [3, 4], 0.0)):
        held = curve(pairs(same, other))
        assert held.area()[0] == area
        assert held.equal_error()[0] == 1 - area


def test_scores_all_alike_are_a_coin() -> None:
    held = curve(pairs([1, 1], [1, 1, 1]))
    assert (held.area()[0], held.equal_error()[0]) == (0.5, 0.5)


def test_between_two_thresholds_the_errors_are_met_half_way() -> None:
    # From (0, 1/3) the next threshold, shared by all others, leads to (1, 1): along it false
    # alarms x and misses (1 - x) 2/3 meet at x = 2/5.
    assert curve(pairs([2, 1, 1], [1])).equal_error()[0] == pytest.approx(2 / 5)


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=8),
    st.lists(st.integers(0, 5), min_size=1, max_size=8),
)
def test_the_area_is_that_of_sklearn_and_the_bootstrap_looks_at_the_same_curve(
    same: list[int], other: list[int]
) -> None:
    held = pairs([float(one) for one in same], [float(one) for one in other])
    assert curve(held).area()[0] == pytest.approx(roc_auc_score(held.same, held.scores))
    # Few thresholds, so the bootstrap looks at every one: its draws lie around the figure.
    for figure in (matching_auc, equal_error_rate):
        told = figure([held], SEED)
        if told.low is not None:
            assert told.low - 1e-9 <= told.mean <= told.high + 1e-9


def test_every_target_is_paired_with_every_user() -> None:
    (ranking,) = rankings([found((0.4, 0.3, 0.2, 0.1), "b", 0), found((1, 2, 3, 4), "x", 1)])
    held = matches(ranking)
    assert held.scores.tolist() == [0.4, 0.3, 0.2, 0.1, 1, 2, 3, 4]
    assert held.same.tolist() == [False, True, *[False] * 6]
    assert (held.known, held.unknown) == (1, 1)


def test_where_people_are_recognised_the_interval_lies_above_a_coin_and_else_around_it() -> (
    None
):
    for strength, low, high in ((2.0, 0.8, 0.97), (0.0, 0.4, 0.6)):
        held = [matches(one) for one in rankings(run(strength, people=20))]
        told = matching_auc(held, SEED)
        assert told.low is not None
        assert told.high is not None
        assert low < told.low < told.mean < told.high < high


def test_what_one_person_sends_clumps_and_widens_the_interval() -> None:
    widths = []
    for clump in (0.0, 2.0):
        held = [matches(one) for one in rankings(run(1.0, people=20, updates=12, clump=clump))]
        told = equal_error_rate(held, SEED)
        assert told.low is not None
        assert told.high is not None
        widths.append(told.high - told.low)
    assert widths[1] > 1.5 * widths[0]


def test_comparisons_of_targets_are_pairs_of_those_who_sent_them() -> None:
    bare = found((0.9, 0.1), "a", 0, users=("anon/1", "anon/2"))
    lone = replace(found((0.2,), "b", 1, users=("anon/2",)), true=(0.0,))
    (held,) = sender_matches([lone, replace(bare, true=(1.0, 0.0))])
    assert held.scores.tolist() == [0.2, 0.9, 0.1]
    assert held.same.tolist() == [False, True, False]
    # a, of whom there is a true pair, comes first.
    assert held.person.tolist() == [1, 0, 0]
    assert (held.known, held.unknown) == (1, 1)
    assert sender_matches([lone]) == ()


def test_hits_at_a_rate_of_false_alarms_are_the_mean_over_runs() -> None:
    # Run 0: the true pair above both others, 1 at any rate. Run 1: below one of the two, so it
    # passes at half the false alarms.
    first = found((3, 1, 0), "a", 0, users="abc")
    second = found((1, 3, 0), "a", 0, users="abc", seed=1)
    runs = [matches(one) for one in rankings([first, second])]
    assert hits_at(runs, np.array([0.0, 0.5])) == pytest.approx([1 / 2, 1])
