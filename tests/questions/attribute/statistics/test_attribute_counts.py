"""Attribute claims are counted by true value and by user."""

from dataclasses import replace

import pytest

from overheard.core.scorer import Score
from overheard.findings.finding import ClaimRow, Finding
from overheard.questions.attribute.statistics.attribute_rows import count_by_value
from tests.auditing.identity_findings import identity_finding

VALUES = ("young", "old")


def claimed(user: str, true: str, accuracy: float, number: int, seed: int = 0) -> Finding:
    bare = identity_finding((0.5, 0.5), user, number, users=VALUES, seed=seed)
    is_true = tuple(float(value == true) for value in VALUES)
    row = ClaimRow(is_true if true in VALUES else (*is_true, 1.0))
    return replace(bare, true=row, scores=(Score("accuracy", accuracy, "higher", {}, {}),))


def test_rare_values_have_the_weight_of_frequent_ones() -> None:
    # Young: 3 of 4 correct; old: none of 1. The mean is 3/8; plain accuracy is 3/5.
    findings = [claimed("a", "young", float(n < 3), n) for n in range(4)] + [
        claimed("b", "old", 0.0, 4)
    ]
    (run,) = count_by_value(findings)
    assert run.balanced_accuracy().value() == pytest.approx(3 / 8)
    assert run.correct.shape == (2, 2)


def test_a_true_value_that_is_not_claimed_is_an_additional_value() -> None:
    (run,) = count_by_value([claimed("a", "young", 1.0, 0), claimed("b", "ancient", 0.0, 1)])
    assert run.balanced_accuracy().value() == pytest.approx(1 / 2)


def test_runs_are_counted_separately() -> None:
    runs = count_by_value(
        [claimed("a", "young", 1.0, 0), claimed("a", "young", 0.0, 0, seed=1)]
    )
    assert [run.balanced_accuracy().value() for run in runs] == [1, 0]
