"""Rates over records: worked by hand from few of them."""

import pytest

from overheard.core.parties import SERVER, client
from overheard.core.scorer import Score
from overheard.findings.finding import Cell, Finding
from overheard.questions.membership.statistics.record_rates import record_rates
from overheard.statistics.exact import proportion


def finding(
    target: int,
    own: list[float],
    others: list[float],
    found: float | None = None,
    seed: int = 0,
) -> Finding:
    """Of one client: its records, one of another client's, and those of nobody."""
    cell = Cell("arm", seed, (SERVER,), "lira", "Lira()", "membership", (0,))
    true = (*(1.0,) * len(own), 0.0, *(-1.0,) * len(others))
    rate = () if found is None else (Score("tpr_at_1_percent", found, "higher", {}, {}),)
    return Finding(cell, client(target), (*own, 9.0, *others), true, rate)


def test_members_of_all_clients_are_pooled() -> None:
    told = record_rates([finding(0, [1.0] * 4, [0.0], 0.25), finding(1, [1.0] * 2, [0.0], 1.0)])
    # One of four and both of two.
    assert told.members == 6
    assert told.found == {"tpr_at_1_percent": proportion(3.0, 6)}


def test_accuracy_weighs_both_kinds_alike_and_leaves_records_of_others_out() -> None:
    # Three of four own are above 0; of nobody's two neither is, and 0 is not above it.
    told = record_rates([finding(0, [1.0, 2.0, 3.0, -1.0], [0.0, -1.0])])
    assert told.accuracy.mean == pytest.approx((0.75 + 1.0) / 2)
    # Half the error goes to each side.
    sides = proportion(3.0, 4, 0.975), proportion(2.0, 2, 0.975)
    assert told.accuracy.low == pytest.approx(sum(one.low or 0.0 for one in sides) / 2)
    assert told.accuracy.high == pytest.approx(sum(one.high or 0.0 for one in sides) / 2)


def test_a_record_of_nobody_counts_once_a_run_however_many_clients_are_asked_about() -> None:
    # In the first run one client errs of one of two records, the other of none: 1.5 of 2 right.
    runs = [finding(0, [1.0], [1.0, -1.0]), finding(1, [1.0], [-1.0, -1.0])]
    told = record_rates(runs)
    assert told.outsiders == 2
    assert told.accuracy.mean == pytest.approx((1.0 + 0.75) / 2)
    assert record_rates([*runs, finding(0, [1.0], [-1.0, -1.0], seed=1)]).outsiders == 4


def test_a_small_rate_of_false_positives_is_told_badly_by_few_records() -> None:
    def passing(outsiders: int) -> float:
        told = record_rates([finding(0, [1.0], [0.0] * outsiders, 0.0)])
        high = told.passing["tpr_at_1_percent"].high
        assert high is not None
        return high

    # One of a hundred: 5.4 % may pass, by the tables of the binomial distribution.
    assert passing(100) == pytest.approx(0.0545, abs=1e-3)
    assert passing(10_000) < 0.013


def test_rates_that_were_not_scored_are_left_out() -> None:
    told = record_rates([finding(0, [1.0], [0.0])])
    assert not told.found
    assert not told.passing
