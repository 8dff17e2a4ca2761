"""A rule on sums passes on the proven bound alone."""

import json

import pytest

from overheard.gate.policy import SumRule
from overheard.gate.sums import sum_verdicts
from overheard.gate.verdict import RuleVerdict
from tests.gate.documents import findings, run


def sums(low: int = 2, high: int = 4, largest: float = 0.6) -> dict[str, object]:
    return {
        "clients": 20,
        "rounds": 10,
        "smallest_cohort": 10,
        "largest_cohort": 10,
        "fixed_groups": 20,
        "rank": 10,
        "resolution": 0.4,
        "largest_resolution": largest,
        "by_round": [0.4],
        "amplification": {"10": None},
        "group_at_least": low,
        "group_at_most": high,
        "group": ["client/3"],
        "one_apart": 0,
        "counts_known": None,
        "is_weighted": False,
    }


def only(runs: list[dict[str, object]], **limit: object) -> RuleVerdict:
    rule = SumRule.model_validate_json(json.dumps({"name": "r"} | limit))
    (verdict,) = sum_verdicts(rule, findings(arms=runs))
    return verdict


@pytest.mark.parametrize(("limit", "status"), [(2, "pass"), (4, "inconclusive"), (5, "fail")])
def test_a_smallest_group_is_judged_by_its_bounds(limit: int, status: str):
    verdict = only([run(sums=sums())], smallest_group_at_least=limit)
    assert (verdict.status, verdict.figure_text) == (status, "2 (2 to 4)")


def test_one_run_that_reveals_too_much_fails_the_arm():
    runs = [run(seed=0, sums=sums()), run(seed=1, sums=sums(1, 1, 0.8))]
    assert only(runs, smallest_group_at_least=2).status == "fail"
    assert only(runs, resolution_at_most=0.7).status == "fail"
    assert only(runs, resolution_at_most=0.8).status == "pass"


def test_an_arm_without_sums_is_inconclusive():
    verdict = only([run()], resolution_at_most=0.7)
    assert (verdict.status, verdict.arm) == ("inconclusive", "no arm")
    named = only([run("bare"), run("masked", sums=sums())], resolution_at_most=1, arms=["bare"])
    assert named.status == "inconclusive"
    assert "secure aggregation" in named.why
