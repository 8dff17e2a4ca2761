"""The audits of Overheard's own measurements."""

import pytest

from overheard.plans.registries import ATTACKS
from overheard.questions.membership.claim import Membership
from overheard_studies import plan_files
from overheard_studies.measurements.audits import adapters, membership, shift, words
from overheard_studies.measurements.equal_views import GRIDS, TUNING_SEEDS, equal_views_plan
from overheard_studies.measurements.membership_worlds import FIRST, membership_worlds
from overheard_studies.plan_files import BASE


def test_every_federation_with_words_has_an_arm_without_defenses() -> None:
    for plan in words().plans(quick=True).values():
        assert plan.arms[0].name == "no defense"
        assert len(plan.arms) > 4


def test_a_pretrained_base_is_named_by_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    bases = list[str]()
    for base in (None, "base.safetensors"):
        if base is not None:
            monkeypatch.setenv(BASE, base)
        plan_files._document.cache_clear()
        model = adapters().plans(quick=True)["rank_8"].training.model
        bases.append(model.base)
    plan_files._document.cache_clear()
    assert bases == ["", "base.safetensors"]
    assert model.rank == 8


def test_all_attacks_on_identity_choose_among_as_many_settings() -> None:
    assert {len(grid) for grid in GRIDS.values()} == {4}
    assert equal_views_plan("random", TUNING_SEEDS[0]).seeds == (100,)


def test_membership_is_reported_on_seeds_that_chose_nothing() -> None:
    for plan in membership().plans(quick=False).values():
        assert not set(plan.seeds) & set(range(100, 106))


def test_a_shift_is_in_the_middle_of_the_rounds() -> None:
    plan = shift().plans(quick=True)["rivals_70"]
    assert plan.seeds == (8000,)
    assert [(one.round, one.weights is None) for one in plan.data.shifts] == [
        (4, True), (8, False), (12, True),
    ]  # fmt: skip


def test_every_case_of_a_shift_has_the_weights_that_its_name_states() -> None:
    for name, plan in shift().plans(quick=False).items():
        even = float(name.rpartition("_")[2])
        weights = {one.weights[0] for one in plan.data.shifts if one.weights}
        assert weights == {even}


def test_every_attack_on_membership_is_compared_in_every_federation() -> None:
    names = {one for one, kind in ATTACKS.plugins().items() if kind.claim_type is Membership}
    for plan in membership_worlds().plans(quick=False).values():
        (threat,) = plan.threats
        assert {one.name for one in threat.attacks} == names
        assert threat.attacks[0].name == FIRST
        assert len(plan.seeds) >= 5
