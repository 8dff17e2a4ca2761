"""An arm keeps a cost limit only if all of its runs do."""

import json

import pytest

from overheard.gate.judged_findings import cost_verdicts
from overheard.gate.policy import CostRule
from overheard.gate.verdict import RuleVerdict, Status
from tests.gate.documents import findings, run


def rule(**changes: object) -> CostRule:
    return CostRule.model_validate_json(json.dumps({"name": "r"} | changes))


def only(asked: CostRule, runs: list[dict[str, object]]) -> RuleVerdict:
    """Return the verdict on the only arm of these runs."""
    (verdict,) = cost_verdicts(asked, findings(arms=runs), "inconclusive")
    return verdict


def ended(*accuracies: float | None) -> list[dict[str, object]]:
    return [
        run(seed=seed, accuracy={"0": 1.0, "10": accuracy, "9": 0.0})
        for seed, accuracy in enumerate(accuracies)
    ]


@pytest.mark.parametrize(
    ("accuracies", "status"),
    [
        ((0.8, 0.9), "pass"),
        ((0.7, 0.9), "inconclusive"),
        ((0.6, 0.7), "fail"),
        ((0.9,), "inconclusive"),  # one run shows no variation
        ((0.9, None), "inconclusive"),
    ],
)
def test_accuracy_is_that_of_the_last_tested_round(
    accuracies: tuple[float | None, ...], status: Status
):
    verdict = only(rule(accuracy_at_least=0.8), ended(*accuracies))
    assert verdict.status == status


def test_another_utility_is_no_accuracy():
    explained = [run(seed=seed, utility="explained variance") for seed in range(2)]
    verdict = only(rule(accuracy_at_least=0.1), explained)
    assert verdict.status == "inconclusive"
    assert verdict.why == "the runs measured explained variance, not accuracy"


def test_bytes_include_both_directions():
    # 1000 up and 500 down in each run
    runs = [run(seed=0), run(seed=1)]
    enough, short = (only(rule(bytes_at_most=most), runs) for most in (1500, 1499))
    assert (enough.status, short.status) == ("pass", "fail")
    assert short.figure_text == "1,500 (1,500 to 1,500)"


def test_seconds_are_wall_clock_time():
    slow = run(seed=1, seconds={"wall": 4.0, "cores": None})
    now = findings(arms=[run(seed=0), slow])
    (verdict,) = cost_verdicts(rule(seconds_at_most=3), now, "fail")
    assert (verdict.status, verdict.figure_text) == ("fail", "3.25 (2.5 to 4)")


@pytest.mark.parametrize("limit", ["accuracy_at_least", "bytes_at_most", "seconds_at_most"])
def test_unmeasured_costs_are_inconclusive(limit: str):
    bare = [run(seed=seed, accuracy={}, bytes=None, seconds=None) for seed in (0, 1)]
    (verdict,) = cost_verdicts(rule(**{limit: 1.0}), findings(arms=bare), "pass")
    assert (verdict.status, verdict.why) == ("inconclusive", "not measured in 2 of 2 runs")


def test_judges_each_arm_and_ignores_controls():
    runs = [run("bare", 0), run("bare", 1), run("noise", 0), run("noise", 1)]
    control = run(
        "bare", 0, is_control=True, bytes={"up": 10**9, "down": 0, "answers": 8, "heard": 10}
    )
    verdicts = cost_verdicts(
        rule(bytes_at_most=1500), findings(arms=[*runs, control]), "inconclusive"
    )
    assert [(verdict.subject, verdict.status) for verdict in verdicts] == [
        ("bare", "pass"),
        ("noise", "pass"),
    ]


def test_a_missing_arm_does_not_pass():
    two = findings(arms=[run(seed=0), run(seed=1)])
    first, second = cost_verdicts(rule(bytes_at_most=1500, arms=["bare", "nosie"]), two, "pass")
    assert (first.status, second.status) == ("pass", "inconclusive")
    (nothing,) = cost_verdicts(rule(bytes_at_most=1), findings(arms=[]), "pass")
    assert nothing.status == "inconclusive"
