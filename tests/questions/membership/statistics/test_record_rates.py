"""Rates over records match values worked by hand."""

import pytest

from overheard.core.parties import SERVER, client
from overheard.core.scorer import Score
from overheard.findings.finding import Cell, ClaimRow, Finding
from overheard.questions.membership.statistics.record_rates import estimate_record_rates
from overheard.statistics.exact_intervals import estimate_auc_of_trials, estimate_proportion


def finding(
    target: int,
    members: list[float],
    non_members: list[float],
    found: float | None = None,
    seed: int = 0,
) -> Finding:
    """Build a finding with members, one record of another client, and non-members."""
    cell = Cell("arm", seed, (SERVER,), "lira", "Lira()", "membership", (0,))
    true = (*(1.0,) * len(members), 0.0, *(-1.0,) * len(non_members))
    rate = () if found is None else (Score("tpr_at_1_percent", found, "higher", {}, {}),)
    claimed = ClaimRow((*members, 9.0, *non_members))
    return Finding(cell, (client(target),), claimed, ClaimRow(true), rate)


def test_pools_the_members_of_all_clients() -> None:
    rates = estimate_record_rates(
        [finding(0, [1.0] * 4, [0.0], 0.25), finding(1, [1.0] * 2, [0.0], 1.0)]
    )
    # One of four and both of two.
    assert rates.members == 6
    assert rates.true_positive_rates == {"tpr_at_1_percent": estimate_proportion(3.0, 6)}


def test_a_rate_is_that_of_the_runs_with_enough_non_members() -> None:
    # Canaries are assigned at random, so that one run may have fewer non-members than another.
    rated, other = finding(0, [1.0] * 4, [0.0] * 2, 0.25), finding(0, [1.0], [0.0], seed=1)
    for findings in ([rated, other], [other, rated]):
        rates = estimate_record_rates(findings)
        assert rates.true_positive_rates == {"tpr_at_1_percent": estimate_proportion(1.0, 4)}
        assert rates.false_positive_rates == {"tpr_at_1_percent": estimate_proportion(0.02, 2)}
        assert (rates.members, rates.non_members) == (5, 3)


def test_accuracy_weighs_members_and_non_members_equally() -> None:
    # Three of four members are above 0; neither of two non-members is, as 0 is not above 0.
    rates = estimate_record_rates([finding(0, [1.0, 2.0, 3.0, -1.0], [0.0, -1.0])])
    assert rates.accuracy.mean == pytest.approx((0.75 + 1.0) / 2)
    # Each side gets half the error.
    sides = estimate_proportion(3.0, 4, 0.975), estimate_proportion(2.0, 2, 0.975)
    assert rates.accuracy.low == pytest.approx(sum(one.low or 0.0 for one in sides) / 2)
    assert rates.accuracy.high == pytest.approx(sum(one.high or 0.0 for one in sides) / 2)


def test_a_non_member_counts_once_per_run_for_any_number_of_clients() -> None:
    # In the first run one client has one of two wrong, the other none: 1.5 of 2 correct.
    runs = [finding(0, [1.0], [1.0, -1.0]), finding(1, [1.0], [-1.0, -1.0])]
    rates = estimate_record_rates(runs)
    assert rates.non_members == 2
    assert rates.accuracy.mean == pytest.approx((1.0 + 0.75) / 2)
    assert (
        estimate_record_rates([*runs, finding(0, [1.0], [-1.0, -1.0], seed=1)]).non_members == 4
    )


def test_few_non_members_give_a_wide_interval_of_the_false_positive_rate() -> None:
    def passing(outsiders: int) -> float:
        rates = estimate_record_rates([finding(0, [1.0], [0.0] * outsiders, 0.0)])
        high = rates.false_positive_rates["tpr_at_1_percent"].high
        assert high is not None
        return high

    # One of a hundred: 5.4 % may pass, by the tables of the binomial distribution.
    assert passing(100) == pytest.approx(0.0545, abs=1e-3)
    assert passing(10_000) < 0.013


def test_the_auc_counts_members_of_all_clients_and_non_members_once_per_run() -> None:
    # 4 + 2 + 3 members; 2 non-members in the first run, whose clients share them, and 1.
    rates = estimate_record_rates(
        [
            finding(0, [1.0] * 4, [0.0, 0.0]),
            finding(1, [1.0] * 2, [0.0, 0.0]),
            finding(0, [1.0] * 3, [0.0], seed=1),
        ]
    )
    assert rates.auc(0.9) == estimate_auc_of_trials(0.9, 9, 3)


def test_the_end_of_a_perfect_auc_solves_its_score_equation() -> None:
    # With one member and one non-member the variance is a (1 - a). So the low end solves
    # 1 - a = 1.96 sqrt(a (1 - a)), that is 1 - a = 3.8415 a.
    auc = estimate_record_rates([finding(0, [1.0], [0.0])]).auc(1.0)
    assert auc.low == pytest.approx(1 / 4.8415, abs=1e-4)
    assert auc.high == 1.0
