"""Lower bounds of epsilon: worked by hand, and rarely above what is true."""

from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.parties import SERVER, client
from overheard.epsilon.bound import Rates, epsilon_bound, proven
from overheard.findings.finding import Cell, Finding
from overheard.statistics.exact import proportion

RATES = st.floats(0.001, 0.999)


def finding(
    own: list[float],
    others: list[float],
    *,
    target: int = 0,
    seed: int = 0,
    attack: str = "lira",
    rounds: tuple[int, ...] = (0,),
) -> Finding:
    """Of one client: its records, one of another client's, and those of nobody."""
    cell = Cell("arm", seed, (SERVER,), attack, "Lira()", "membership", rounds)
    true = (*(1.0,) * len(own), 0.0, *(-1.0,) * len(others))
    return Finding(cell, client(target), (*own, 99.0, *others), true, ())


def test_a_rate_that_is_eight_times_as_large_proves_the_logarithm_of_eight() -> None:
    assert proven(0.8, 0.1, 0.0) == pytest.approx(log(8))
    assert proven(0.8, 0.1, 0.4) == pytest.approx(log(4))


def test_records_below_the_threshold_prove_as_much_the_other_way_round() -> None:
    # Of those of nobody 0.4 are below it, and of members 0.05.
    assert proven(0.95, 0.6, 0.0) == pytest.approx(log(8))
    assert proven(0.95, 0.6, 0.2) == pytest.approx(log(4))


def test_no_better_than_a_coin_proves_nothing() -> None:
    assert proven(0.3, 0.3, 0.0) == proven(0.2, 0.7, 0.0) == proven(0.0, 1.0, 0.5) == 0.0


@given(RATES, RATES, RATES, st.floats(1e-9, 0.3))
def test_to_find_more_never_proves_less(
    one: float, two: float, passed: float, delta: float
) -> None:
    less, more = sorted((one, two))
    assert proven(less, passed, delta) <= proven(more, passed, delta)


@given(RATES, RATES, RATES, st.floats(1e-9, 0.3))
def test_to_pass_more_never_proves_more(
    one: float, two: float, found: float, delta: float
) -> None:
    less, more = sorted((one, two))
    assert proven(found, less, delta) >= proven(found, more, delta)


def test_the_bound_is_that_of_known_counts_on_the_half_that_chose_nothing() -> None:
    # Scores of either kind are 1 or 0. At even places the 1s part the kinds, so 0 is the
    # threshold; at odd places 80 of 100 members and 10 of 100 others are above it.
    own = [score for k in range(100) for score in (1.0, float(k < 80))]
    others = [score for k in range(100) for score in (0.0, float(k < 10))]
    bound = epsilon_bound([finding(own, others)], delta=1e-5)
    assert bound is not None
    low, high = proportion(80.0, 100).low, proportion(10.0, 100).high
    assert low is not None
    assert high is not None
    # 0.7082 and 0.1762, by tables of Clopper and Pearson.
    assert (low, high) == (pytest.approx(0.7082, abs=1e-4), pytest.approx(0.1762, abs=1e-4))
    assert bound.epsilon == pytest.approx(log((low - 1e-5) / high))
    assert isinstance(bound.evidence, Rates)
    assert (bound.evidence.threshold, bound.members, bound.outsiders) == (0.0, 100, 100)


def test_what_stands_out_by_chance_in_one_half_alone_proves_nothing() -> None:
    own = [score for _ in range(100) for score in (1.0, 0.0)]
    bound = epsilon_bound([finding(own, [0.0] * 200)], delta=1e-5)
    assert bound is not None
    assert bound.epsilon == 0.0


def test_a_record_of_nobody_counts_once_a_run_and_the_longest_rounds_count() -> None:
    own, others = [1.0] * 40, [0.0] * 40
    asked = [
        *(finding(own, others, target=who, rounds=(0, 1)) for who in range(3)),
        finding([0.0] * 40, [1.0] * 40, rounds=(1,)),
        finding(own, others, seed=1, rounds=(0, 1)),
    ]
    bound = epsilon_bound(asked, delta=1e-5)
    assert bound is not None
    assert (bound.members, bound.outsiders) == (4 * 20, 2 * 20)
    assert isinstance(bound.evidence, Rates)
    assert bound.evidence.found.mean == 1.0
    assert bound.evidence.passed.mean == 0.0


def test_the_better_attack_is_taken() -> None:
    blind = finding([0.0, 1.0] * 50, [0.0, 1.0] * 50, attack="coin")
    bound = epsilon_bound([blind, finding([1.0] * 100, [0.0] * 100)], delta=1e-5)
    assert bound is not None
    assert bound.attack == "lira"


def test_one_record_of_a_kind_is_too_few_to_choose_and_to_reckon_on() -> None:
    assert epsilon_bound([finding([1.0], [0.0] * 10)], delta=1e-5) is None
    assert epsilon_bound([finding([1.0] * 10, [0.0])], delta=1e-5) is None
    assert epsilon_bound([], delta=1e-5) is None


@pytest.mark.slow
@given(epsilon=st.floats(0.0, 4.0), start=st.integers(0, 2**31))
@settings(max_examples=4, deadline=None)
def test_of_answers_at_random_of_known_epsilon_the_bound_exceeds_it_in_5_percent_at_most(
    epsilon: float, start: int
) -> None:
    # Warner's randomized response tells the truth with a chance of e^eps / (1 + e^eps), beside
    # a score that tells nothing: the threshold has to be chosen. Of 200 releases 20 or more
    # would be above it with a chance of 0.002 if 5 % were.
    random, tellers = np.random.default_rng(start), exp(epsilon) / (1 + exp(epsilon))

    def released(members: bool, count: int) -> list[float]:
        says = random.random(count) < (tellers if members else 1 - tellers)
        scores: list[float] = (says + 0.9 * random.random(count)).tolist()
        return scores

    above = 0
    for _ in range(200):
        bound = epsilon_bound([finding(released(True, 100), released(False, 300))], delta=1e-9)
        assert bound is not None
        above += bound.epsilon > epsilon
    assert above < 20


def test_the_bound_comes_near_the_truth_with_many_records() -> None:
    random = np.random.default_rng(0)
    own = (random.random(20_000) < exp(2) / (1 + exp(2))).astype(float)
    others = (random.random(20_000) < 1 / (1 + exp(2))).astype(float)
    bound = epsilon_bound([finding(own.tolist(), others.tolist())], delta=1e-9)
    assert bound is not None
    assert 1.85 < bound.epsilon < 2.0
