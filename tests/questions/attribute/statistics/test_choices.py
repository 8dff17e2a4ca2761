"""Values of an attribute are counted by their true value, and people drawn whole."""

from dataclasses import replace

import pytest

from overheard.core.scorer import Score
from overheard.findings.finding import Finding
from overheard.questions.attribute.statistics.choices import choices
from tests.auditing.recognised import found

VALUES = ("young", "old")


def told(who: str, true: str, accuracy: float, number: int, seed: int = 0) -> Finding:
    bare = found((0.5, 0.5), who, number, users=VALUES, seed=seed)
    held = tuple(float(value == true) for value in VALUES)
    true_numbers = held if true in VALUES else (*held, 1.0)
    return replace(
        bare, true=true_numbers, scores=(Score("accuracy", accuracy, "higher", {}, {}),)
    )


def test_rare_values_count_as_much_as_frequent_ones() -> None:
    # Young: 3 of 4 right; old: none of 1. Mean 3/8, where plain accuracy is 3/5.
    held = [told("a", "young", float(n < 3), n) for n in range(4)] + [told("b", "old", 0.0, 4)]
    (run,) = choices(held)
    assert run.balanced_accuracy().once() == pytest.approx(3 / 8)
    assert run.right.shape == (2, 2)


def test_a_true_value_that_was_not_named_is_one_more() -> None:
    (run,) = choices([told("a", "young", 1.0, 0), told("b", "ancient", 0.0, 1)])
    assert run.balanced_accuracy().once() == pytest.approx(1 / 2)


def test_runs_are_kept_apart() -> None:
    runs = choices([told("a", "young", 1.0, 0), told("a", "young", 0.0, 0, seed=1)])
    assert [run.balanced_accuracy().once() for run in runs] == [1, 0]
