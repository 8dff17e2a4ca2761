"""A portion selects audits by name and replaces seeds."""

import pytest

from overheard.core.errors import PlanError
from overheard.papers.portion import ALL, Portion
from overheard.papers.registry import find_experiment

PLANS = find_experiment("whispers/table3").plans(quick=True)


def test_the_whole_experiment_keeps_its_plans():
    assert ALL.select("whispers/table3", PLANS) == PLANS


def test_only_the_named_audits_are_selected_with_the_new_seeds():
    selected = Portion(("mnist_alpha_2", "mnist_alpha_0.5"), (4, 5)).select("table3", PLANS)
    assert list(selected) == ["mnist_alpha_0.5", "mnist_alpha_2"]
    assert all(plan.seeds == (4, 5) for plan in selected.values())


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(PlanError, match=r"no audit 'mnist'; its audits: mnist_alpha_0\.5, "):
        Portion(("mnist",)).select("whispers/table3", PLANS)
