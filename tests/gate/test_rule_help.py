"""Each rule is described by what it limits."""

import pytest

from overheard.gate.policy import CostRule, EpsilonRule, LeakRule, PolicyRule, VerdictRule
from overheard.gate.rule_help import describe_rule, rule_kind


@pytest.mark.parametrize(
    ("rule", "kind", "text"),
    [
        (VerdictRule(name="r"), "verdicts", "every question: no leak"),
        (
            LeakRule(
                name="r", question="q", score="s", no_better_than=0.6,
                arms=("a", "b"), observers=("server",),
            ),
            "leaks",
            "q: s no better than 0.6, in a; b, by server",
        ),
        (
            EpsilonRule(name="r", proven_at_most=1.0, observers=()),
            "epsilons",
            "epsilon: proven at most 1",
        ),
        (CostRule(name="r", accuracy_at_least=0.9), "costs", "accuracy at least 0.9"),
        (CostRule(name="r", bytes_at_most=9e4), "costs", "bytes at most 90,000"),
        (CostRule(name="r", seconds_at_most=0.0), "costs", "seconds at most 0"),
    ],
)  # fmt: skip
def test_a_rule_is_described_by_its_limit(rule: PolicyRule, kind: str, text: str) -> None:
    assert rule_kind(rule) == kind
    assert describe_rule(rule) == text
