"""The audits of Overheard's own measurements."""

import pytest

from overheard_studies.own.audits import BASE, adapters, membership, words
from overheard_studies.own.equal_views import GRIDS, TUNING_SEEDS, equal_views_plan
from overheard_studies.own.share_audits import SHIFT_CASES


def test_every_federation_with_words_has_an_arm_without_defenses() -> None:
    for plan in words().plans(quick=True).values():
        assert plan.arms[0].name == "no defense"
        assert len(plan.arms) > 4


def test_a_pretrained_base_is_named_by_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = adapters().plans(quick=True)["rank_8"].training.model
    monkeypatch.setenv(BASE, "base.safetensors")
    pretrained = adapters().plans(quick=True)["rank_8"].training.model
    assert (fresh.base, pretrained.base) == ("", "base.safetensors")


def test_all_attacks_on_identity_choose_among_as_many_settings() -> None:
    assert {len(grid) for grid in GRIDS.values()} == {4}
    assert equal_views_plan("random", TUNING_SEEDS[0]).seeds == (100,)


def test_membership_is_reported_on_seeds_that_chose_nothing() -> None:
    for plan in membership().plans(quick=False).values():
        assert not set(plan.seeds) & set(range(100, 106))


def test_a_shift_is_in_the_middle_of_the_rounds() -> None:
    plan = SHIFT_CASES["rivals"].plan(70, (0,))
    assert [(one.round, one.weights is None) for one in plan.data.shifts] == [
        (4, True), (8, False), (12, True),
    ]  # fmt: skip
