"""A portion selects audits by name and replaces seeds."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from overheard.auditing.folder import AuditFolder
from overheard.core.errors import PlanError
from overheard_studies import portion as portion_module
from overheard_studies.portion import ALL, Portion
from overheard_studies.reproduce import find_study

PLANS = find_study("whispers/table3").plans(quick=True)


def test_the_whole_experiment_keeps_its_plans():
    assert ALL.select("whispers/table3", PLANS) == PLANS


def test_only_the_named_audits_are_selected_with_the_new_seeds():
    selected = Portion(("mnist_alpha_2", "mnist_alpha_0.5"), (4, 5)).select("table3", PLANS)
    assert list(selected) == ["mnist_alpha_0.5", "mnist_alpha_2"]
    assert all(plan.seeds == (4, 5) for plan in selected.values())


def test_only_the_named_arms_and_the_one_without_defenses_are_selected():
    plans = find_study("whispers/table4").plans(quick=True)
    (plan,) = Portion(arms=("epsilon 5",)).select("whispers/table4", plans).values()
    assert [arm.name for arm in plan.arms] == ["no defense", "epsilon 5"]
    assert ALL.select("whispers/table4", plans) == plans


def test_an_audit_without_the_named_arms_is_left_out():
    plans = {**find_study("whispers/table4").plans(quick=True), **PLANS}
    assert list(Portion(arms=("epsilon 5",)).select("both", plans)) == ["audit"]


def test_an_unknown_arm_is_refused_with_the_known_ones_of_the_selected_audits():
    plans = {**find_study("whispers/table4").plans(quick=True), **PLANS}
    with pytest.raises(PlanError, match="no arm 'epsilon 3'; its arms: no defense, epsilon 1,"):
        Portion(("audit",), arms=("epsilon 3",)).select("both", plans)
    with pytest.raises(
        PlanError, match="audits mnist_alpha_2 has no arm 'epsilon 5'; its arms: no"
    ):
        Portion(("mnist_alpha_2",), arms=("epsilon 5",)).select("both", plans)


def test_a_selected_audit_keeps_the_arms_of_which_its_folder_has_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    plans = find_study("whispers/table4").plans(quick=True)
    selected = Portion(arms=("epsilon 1",)).select("table4", plans)
    kept = partial(Portion().add_finished, selected, plans, tmp_path)
    assert kept() == selected
    # An audit with all arms that was interrupted has no findings yet.
    home = AuditFolder(tmp_path / "audit")
    home.reserve(plans["audit"].toml())
    assert kept() == selected
    found = SimpleNamespace(arm_names=("no defense", "epsilon 5"))
    monkeypatch.setattr(portion_module, "read_findings", lambda path: found)
    assert [arm.name for arm in kept()["audit"].arms] == [
        "no defense",
        "epsilon 1",
        "epsilon 5",
    ]
    # An audit of another plan adds nothing; the audit refuses its folder.
    home.replace_plan(plans["audit"].model_copy(update={"title": "another"}).toml())
    assert kept() == selected


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(PlanError, match=r"no audit 'mnist'; choose among mnist_alpha_0\.5, "):
        Portion(("mnist",)).select("whispers/table3", PLANS)
