from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.plans.plan import UNDEFENDED
from overheard_studies.deanonymization.defended import (
    DefensePanel,
    attacks_by_name,
    defended,
    published_decrease,
)
from overheard_studies.deanonymization.setting import WISDM, IdentityScenario
from studies.tests.separate_arms import run_one_arm_then_all


def test_every_published_setting_has_its_arm() -> None:
    names = [arm.name for arm in DefensePanel(WISDM, 24).arms(adapted=False)]
    # 4 + 3 + 3 data defenses, 5 + 5 update defenses, and the undefended arm.
    assert len(names) == 10 + 10 + 1
    assert {"bkg_repl 1", "rand_aug 2", "mm_aug 0.5", "dp_fedavg 1e-05", "noise 100"} < {*names}


def test_shadow_devices_apply_the_defense_in_adapted_arms_only() -> None:
    assert not any(arm.shadows_defended for arm in DefensePanel(WISDM, 24).arms(adapted=False))
    adapted = DefensePanel(WISDM, 24).arms(adapted=True)
    assert [arm.shadows_defended for arm in adapted] == [False, *[True] * 10]


def test_every_attack_of_both_audits_has_an_attackers_name(tiny: IdentityScenario) -> None:
    panel = DefensePanel(tiny, 8)
    plain, adapted = defended((panel,), (panel,)).plans(quick=False).values()
    names = attacks_by_name(plain, "tiny")
    # An adaptive attacker differs from the non-adaptive one only in that.
    assert "pieces" not in names["simulated"]
    assert "pieces=4" in names["pieces"]
    assert names["pieces_adaptive"] == f"{names['pieces']}, knowing the defenses"
    assert "knowing the defenses" in names["ours_adaptive"]
    assert "wccn" in names["ours"]
    assert attacks_by_name(adapted, "tiny_adapted") == {"shadow_adaptive": names["shadow"]}


@pytest.mark.slow
def test_full_replacement_hides_users_and_each_arm_has_a_utility(
    tiny: IdentityScenario, resources: Resources, tmp_path: Path
) -> None:
    panels = (DefensePanel(tiny, 8, (1.0,), (), (), ()),)
    experiment = defended(panels, panels)
    run = run_one_arm_then_all(experiment, UNDEFENDED, tmp_path, resources)
    values = {one.name: one for one in run}
    assert len(values) == len(run)
    undefended = values["tiny_no_defense_simulated_mean_average_precision"].value
    replaced = values["tiny_bkg_repl_1_simulated_mean_average_precision"].value
    assert undefended is not None
    assert replaced is not None
    assert replaced < 0.75 * undefended
    assert values["tiny_no_defense_utility"].value == pytest.approx(1)
    # The text gives alpha 0.5 only.
    assert values["tiny_bkg_repl_1_shadow_decrease"].published is None
    assert values["tiny_adapted_bkg_repl_1_shadow_adaptive_decrease"].value is not None
    page = (tmp_path / "figures.html").read_text(encoding="utf-8")
    # A legend, and panels for shadow devices, simulated updates, chunks and Overheard's attack.
    assert page.count('role="img"') + page.count('class="keys"') == 5


def test_only_alpha_one_half_has_a_published_decrease() -> None:
    assert published_decrease("mm_aug 0.5") == 0.75
    assert published_decrease("bkg_repl 0.5") == 0.67
    assert published_decrease("bkg_repl 1") is None
    assert published_decrease("noise 0.5") is None
    assert published_decrease(UNDEFENDED) is None
